-- settle: ARGV 3 pages, 4 groups, 5 links that the client knows to be known, then the groups, then of each page:
--   token, kind (d counted, u not counted, r retry, x dropped, b returned, o robots), its wait, ms since its start, answer, tuning, cookies, seeds, tally, values,
--   output, robots answer. Absent: ''. First everything is read and checked, then the links are added, then the pages acknowledged.
local ARGS = 12
local pageCount, groups, elsewhere = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local from = pageCount and groups and elsewhere and checkGroups(6, groups)
if not from or from + pageCount * ARGS ~= #ARGV + 1 then return redis.error_reply('BADARGS settle') end

local pages, answers, used = {}, {}, {}
do
  local tokens = {}
  for n = 1, pageCount do tokens[n] = ARGV[from + (n - 1) * ARGS] end
  readLeasesAhead(tokens, true, false)
end
for n = 1, pageCount do
  local a = from + (n - 1) * ARGS
  local token, kind = ARGV[a], ARGV[a + 1]
  if #kind ~= 1 or not string.find('duxrbo', kind, 1, true) then return redis.error_reply('BADARGS settle kind') end
  if kind == 'r' and not tonumber(ARGV[a + 2]) then return redis.error_reply('BADARGS settle wait') end
  -- The lease's text; false: it is not held any more, '': it was revoked.
  local text = false
  if not used[token] then
    used[token] = true
    text = LEASE_RAW[token]
    if not text and kind == 'b' and call('SISMEMBER', J .. ':rv', token) == 1 then text = '' end
  end
  if text and text ~= '' and kind ~= 'r' and kind ~= 'b' then
    local low, high = byte(text, 9, 10)
    if (kind == 'o') ~= (byte(text, 19 + low + high * 256) % 8 == ROBOTS_HOP) then
      return redis.error_reply('BADKIND a request was settled as what it is not')
    end
  end
  answers[n] = text and 1 or 0
  pages[n] = text
end
touch()

local leases = {}
local function leaseOf(n)
  local e = leases[n]
  if e == nil then
    e = pages[n] and pages[n] ~= '' and readLease(ARGV[from + (n - 1) * ARGS]) or false
    leases[n] = e
  end
  return e
end

-- The item limit. Of a page: how many of its items are written already (nil: it has no record yet), how many of the others will be (nil: all), how many are
-- then, where that is not all, and whether it is handed back, since none finds room.
local told, keep, cut, back = {}, {}, {}, {}
do
  local room, any = itemRoom(), get('cuts') > 0
  for n = 1, (any or room < INF) and pageCount or 0 do
    local a = from + (n - 1) * ARGS
    local kind, packets = ARGV[a + 1], ARGV[a + 10]
    local items = (kind == 'd' or kind == 'u') and itemsOf(packets) or 0
    local e = pages[n] and pages[n] ~= '' and (any and kind ~= 'b' or items > 0) and leaseOf(n)
    if e and not isRelink(placeOf(e)) then
      told[n] = cutOf(placeOf(e))
      local more = math.max(0, items - (told[n] or 0))
      keep[n] = math.min(more, room)
      if keep[n] < more and room > 0 then cut[n] = (told[n] or 0) + keep[n] end
      if more > 0 and room == 0 then
        back[n] = true
        answers[n] = 0
      end
      room = room - keep[n]
    end
  end
end
local function kindOf(n) return back[n] and 'b' or ARGV[from + (n - 1) * ARGS + 1] end

-- Redirect targets whose hop must not be recorded again owe nothing: its lease was lost, or it was fetched for its links only.
addGroups(6, groups, true, function()
  local recorded, doubtful = {}, false
  for n = 1, pageCount do
    local e, kind = leaseOf(n), kindOf(n)
    -- A lease that comes back, or is tried again, vouches for no link: the page was settled in vain under an older one.
    local ends = kind == 'd' or kind == 'u'
    if e and ends and not told[n] and not isRelink(placeOf(e)) then recorded[e.place.fp] = true else doubtful = true end
  end
  return doubtful and recorded or nil
end)

for _, packets in ipairs(owed) do passPackets(packets) end
for _, packet in ipairs(repeated) do send(packet) end
for n = 1, pageCount do
  local packets = pages[n] and ARGV[from + (n - 1) * ARGS + 10] or ''
  local kind = kindOf(n)
  if told[n] and (kind == 'd' or kind == 'u') then
    passRest(packets, told[n], keep[n])
  elseif packets ~= '' and kind ~= 'b' and pages[n] ~= '' and not (LEVELS and isRelink(placeOf(leaseOf(n)))) then
    passPackets(packets, keep[n])
  end
end
if known + elsewhere > 0 then raise('duplicates', known + elsewhere) end

local function learn(e, at, kind)
  local h, tuning = e.host, ARGV[at + 5]
  if tuning ~= '' then tune(h, tuning) end
  if kind ~= 'b' then h.settled = h.settled + 1 end
  local answer = ARGV[at + 4]
  if answer == '' then return end
  local good, ms = sub(answer, 1, 1) == 'g', tonumber(sub(answer, 2))
  if good then
    h.latency = h.latency + ms
    h.answers = h.answers + 1
  end
  local asked = tuning ~= '' and tonumber(string.match(tuning, '^[^,]*,([^,]*)')) or 0
  local held, slots = h.held, slotsOf(h)
  takeAnswer(h, good, ms, e.epoch, asked > 0)
  if h.held > held then holdAll(h, h.held) end
  if h.held ~= held or slotsOf(h) ~= slots then mark(h) end
end

-- The place ends with a page. Lowered meanwhile, it is queued again for its links (decision 4).
local function leaveDone(e)
  local p = e.place
  if p.detached or not LEVELS then
    bump('done', 1)
    dropLevel(p.depth)
    return
  end
  local depth = depthOf(seen(p.fp))
  if depth < e.depth then
    setSeen(p.fp, valueOf(RELINK_QUEUED, depth))
    forgive(p)
    change(p)
    p.attempt, p.crashes = 0, 0
    pushFront(e.host, depth, p.priority, writePlace(p))
    bump('queued', 1)
    return
  end
  bump('done', 1)
  setSeen(p.fp, valueOf(DONE, depth))
  dropLevel(depth)
end

local function delay(e, wait)
  local p, h = e.place, e.host
  if not p.robots then bump('delayed', 1) end
  bump('numbers', 1)
  change(p)
  p.attempt = p.attempt + 1
  local member = pack('<dbBBH', get('numbers'), p.priority, h.isLocal, h.site, #p.host) .. p.host .. writePlace(p)
  call('ZADD', J .. ':rt', exact(now + wait), member)
end

-- kind 1, time to live 8, and: r text, u its reason as JSON, > the next hop: is local 1, length of its site 1, host 2+n, entry
local function answerRobots(p, text)
  local kind, ttl, at = read('<c1d', text)
  local more = sub(text, at)
  if kind == '>' then
    local isLocal, site, length, next = read('<BBH', more)
    local name = sub(more, next, next + length - 1)
    hostOf(name, isLocal, site)
    requeueFront(readPlace(sub(more, next + length), name, 0))
  elseif kind == 'r' then
    settleRobots(p, 'r', ttl, '', more)
  else
    settleRobots(p, kind, ttl, more, nil)
  end
end

local function count(tally)
  local at = 1
  while at <= #tally do
    local by, length, next = read('<dH', tally, at)
    raise(sub(tally, next, next + length - 1), by)
    at = next + length
  end
end

local function apply(e, at, n)
  local kind, since = kindOf(n), tonumber(ARGV[at + 3])
  local p, h = placeOf(e), e.host
  local relink = isRelink(p)
  knowStart(e, since and now - since)
  learn(e, at, kind)
  endLease(e)
  if not relink and not told[n] and kind ~= 'b' then
    count(ARGV[at + 8])
    if ARGV[at + 9] ~= '' then changeValues(ARGV[at + 9]) end
  end
  if ARGV[at + 7] ~= '' then
    for url in string.gmatch(ARGV[at + 7], '[^\n]+') do call('RPUSH', J .. ':ns', url) end
  end
  if ARGV[at + 6] ~= '' then keepCookies(siteOf(h), ARGV[at + 6]) end
  if kind == 'd' or kind == 'u' then
    if kind == 'd' and not relink and not told[n] then bump('counted', 1) end
    if cut[n] then
      forgive(p)
      noteCut(p, cut[n])
      requeueFront(p)
    else
      forgetCut(p)
      leaveDone(e)
    end
  elseif kind == 'r' then
    delay(e, tonumber(ARGV[at + 2]))
  elseif kind == 'x' then
    leaveDropped(p)
  elseif kind == 'b' then
    requeueFront(p)
  else
    answerRobots(p, ARGV[at + 11])
  end
end

-- Nearly every page: done, told of before, well answered, and nothing learnt by which its host's next request starts sooner or later. False: it is another.
local function applyPlain(text, at)
  local kind, answer = ARGV[at + 1], ARGV[at + 4]
  if LEVELS or byte(text, 2) ~= 3 or (kind ~= 'd' and kind ~= 'u') or byte(answer) ~= 103 then return false end
  if ARGV[at + 5] ~= '' or ARGV[at + 6] ~= '' or ARGV[at + 7] ~= '' or ARGV[at + 9] ~= '' then return false end
  local name = hostNameOf(text)
  local record = RAW[name]
  if HR[name] or not record then return false end
  local flags, site, leased, pos, turn, settled, stretch, limit, usual, fixed, crawlDelay, patchedDelay, window, goods, baseline, recent, epoch, steps, held,
    notBefore, answered, latency
  if byte(record) % 64 >= 32 then
    flags, site, leased, pos, turn, settled, stretch, limit, usual, fixed, crawlDelay, patchedDelay, window, goods, baseline, recent, epoch, steps, held,
      notBefore, answered, latency = read(LONG, record)
  else
    -- It has taught nothing yet.
    if S.hosts == 1 then return false end
    flags, site, leased, pos, turn, settled = read(SHORT, record)
    flags = flags + 32
    stretch, limit, usual, fixed, crawlDelay, patchedDelay = 1, S.conc, S.conc, math.max(0, S.delay), 0, -1
    window = flags % 128 >= 64 and limit or math.min(2, limit)
    goods, baseline, recent, epoch, steps, held, notBefore, answered, latency = 0, 0, 0, 0, 0, 0, 0, 0, 0
  end
  local lanes = sub(record, 1 + SHORT_BYTES + (byte(record) % 64 >= 32 and WHOLE_BYTES or 0))
  local ms = tonumber(sub(answer, 2))
  if read('<I4', text, 3) ~= epoch or steps > 0 or held > 0 then return false end
  recent = recent == 0 and ms or recent + (ms - recent) / 8
  if baseline == 0 or recent < baseline then
    baseline = recent
  elseif recent > baseline * 2 and recent - baseline > 100 then
    return false
  else
    baseline = baseline + (recent - baseline) / 256
  end
  goods = goods + 1
  if goods >= 20 then
    if window < limit then return false end
    goods = 0
  end
  record = pack(LONG, flags, site, math.max(0, leased - 1), pos, turn, settled + 1, stretch, limit, usual, fixed, crawlDelay, patchedDelay, window, goods,
    baseline, recent, epoch, steps, held, notBefore, answered + 1, latency + ms) .. lanes
  RAW[name] = record
  quickRecords[name] = record
  ended[#ended + 1] = ARGV[at]
  bump('leased', -1)
  bump('done', 1)
  if kind == 'd' then bump('counted', 1) end
  count(ARGV[at + 8])
  return true
end

for n = 1, pageCount do
  local at, text = from + (n - 1) * ARGS, pages[n]
  if text == '' then
    call('SREM', J .. ':rv', ARGV[at])
  elseif text and (leases[n] or not applyPlain(text, at)) then
    apply(leaseOf(n), at, n)
  end
end
flushLevels()
completeIfOver()
flush()
return { answers, get('over') == 1 and 0 or 1 }

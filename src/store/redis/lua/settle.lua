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
  readLeasesAhead(tokens)
end
for n = 1, pageCount do
  local a = from + (n - 1) * ARGS
  local page = { token = ARGV[a], kind = ARGV[a + 1], wait = tonumber(ARGV[a + 2]), since = tonumber(ARGV[a + 3]), at = a }
  if not string.find('duxrbo', page.kind, 1, true) or #page.kind ~= 1 then return redis.error_reply('BADARGS settle kind') end
  if page.kind == 'r' and not page.wait then return redis.error_reply('BADARGS settle wait') end
  if not used[page.token] then
    used[page.token] = true
    page.lease = readLease(page.token) or nil
    page.revoked = not page.lease and page.kind == 'b' and call('SISMEMBER', J .. ':rv', page.token) == 1
  end
  if page.lease and page.kind ~= 'r' and page.kind ~= 'b' and (page.kind == 'o') ~= page.lease.place.robots then
    return redis.error_reply('BADKIND a request was settled as what it is not')
  end
  answers[n] = (page.lease or page.revoked) and 1 or 0
  pages[n] = page
end
touch()

-- Redirect targets whose hop must not be recorded again owe nothing: its lease was lost, or it was fetched for its links only.
local recorded, doubtful = {}, false
for _, page in ipairs(pages) do
  if page.lease and not isRelink(page.lease.place) then recorded[page.lease.place.fp] = true else doubtful = true end
end
addGroups(6, groups, true, doubtful and recorded or nil)

for _, packets in ipairs(owed) do passPackets(packets) end
for _, packet in ipairs(repeated) do send(packet) end
for _, page in ipairs(pages) do
  local packets = page.lease and ARGV[page.at + 10] or ''
  if packets ~= '' and not isRelink(page.lease.place) then passPackets(packets) end
end
if known + elsewhere > 0 then raise('duplicates', known + elsewhere) end

local function learn(e, page)
  local h = e.host
  if ARGV[page.at + 5] ~= '' then tune(h, ARGV[page.at + 5]) end
  if page.kind ~= 'b' then h.settled = h.settled + 1 end
  local answer = ARGV[page.at + 4]
  if answer == '' then return end
  local good, ms = sub(answer, 1, 1) == 'g', tonumber(sub(answer, 2))
  if good then
    h.latency = h.latency + ms
    h.answers = h.answers + 1
  end
  local held = h.held
  takeAnswer(h, good, ms, e.epoch, tonumber(string.match(ARGV[page.at + 5], '^[^,]*,([^,]*)') or 0) ~= nil
    and (tonumber(string.match(ARGV[page.at + 5], '^[^,]*,([^,]*)') or 0) or 0) > 0)
  if h.held > held then holdAll(h, h.held) end
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

local function apply(e, page)
  local p, h, at = e.place, e.host, page.at
  local relink = isRelink(p)
  knowStart(e, page.since and now - page.since)
  learn(e, page)
  endLease(e)
  if not relink then
    count(ARGV[at + 8])
    changeValues(ARGV[at + 9])
  end
  for url in string.gmatch(ARGV[at + 7], '[^\n]+') do call('RPUSH', J .. ':ns', url) end
  if ARGV[at + 6] ~= '' then keepCookies(siteOf(h), ARGV[at + 6]) end
  if page.kind == 'd' or page.kind == 'u' then
    if page.kind == 'd' and not relink then bump('counted', 1) end
    leaveDone(e)
  elseif page.kind == 'r' then
    delay(e, page.wait)
  elseif page.kind == 'x' then
    leaveDropped(p)
  elseif page.kind == 'b' then
    requeueFront(p)
  else
    answerRobots(p, ARGV[at + 11])
  end
end

for _, page in ipairs(pages) do
  if page.lease then apply(page.lease, page) elseif page.revoked then call('SREM', J .. ':rv', page.token) end
end
flushLevels()
completeIfOver()
flush()
return { answers, get('over') == 1 and 0 or 1 }

-- claim: ARGV 3 most leases, 4 nonce of the client for this call, 5 how many of the URLs that became seeds it knows.
local MOST_REAPED, MOST_RECALLED, UNPARKED = 32, 256, 256
-- A script holds up everybody else; a lease of one more host is what costs. Who asked for more asks again at once.
local MOST_HOSTS = 40
local MAX_CRASHES = 3
local CRASHED_ROBOTS = 300000
local most, nonce, seedsKnown = math.min(tonumber(ARGV[3]), 128), ARGV[4], tonumber(ARGV[5])
if get('over') == 1 then return { 'drained' } end

-- Expired leases go back to the front of their queue, the last one first, so that they come again in their order; the third loss of one drops it.
local function reap()
  local expired = call('ZRANGEBYSCORE', X, '-inf', exact(micros), 'LIMIT', 0, MOST_REAPED)
  readLeasesAhead(expired, true, true)
  for n = #expired, 1, -1 do
    touch()
    local e = readLease(expired[n])
    local p = placeOf(e)
    change(p)
    p.crashes = p.crashes + 1
    local given = p.crashes >= MAX_CRASHES
    local relink = isRelink(p)
    endLease(e)
    if not given then
      requeueFront(p)
    elseif p.robots then
      settleRobots(p, 'u', CRASHED_ROBOTS, '{"code":"robots-unavailable","why":"crashed"}', nil)
    else
      if not relink and not cutOf(p) then sendCrash(p, e.depth) end
      leaveDropped(p)
    end
  end
end

-- rt: number 8 | priority 1, is local 1, length of the site 1, host 2+n | entry
local function recallRetries()
  for _, member in ipairs(call('ZRANGEBYSCORE', J .. ':rt', '-inf', exact(now), 'LIMIT', 0, MOST_RECALLED)) do
    touch()
    call('ZREM', J .. ':rt', member)
    local priority, isLocal, site, length, at = read('<bBBH', member, 9)
    local name = sub(member, at, at + length - 1)
    hostOf(name, isLocal, site)
    local p = readPlace(sub(member, at + length), name, priority)
    if not p.robots then bump('delayed', -1) end
    requeueFront(p)
  end
end

-- Hosts whose level has been opened come back, some at a time.
local function unpark()
  for _, level in ipairs(call('ZRANGEBYSCORE', J .. ':pl', '-inf', get('base') + 1)) do
    local names = call('ZRANGE', J .. ':pk:' .. level, 0, UNPARKED - 1)
    touch()
    readAhead(names)
    -- What lies here against its own record would be met for ever.
    if #names == 0 then call('ZREM', J .. ':pl', level) end
    for _, name in ipairs(names) do
      local h = hostOf(name, 0, 0)
      if h.pos ~= tonumber(level) + 2 then call('ZREM', J .. ':pk:' .. level, name) end
      placeHost(h)
    end
    flushPlaced()
    return true
  end
  return false
end

local leases, given = {}, 0

local DEADLINE = exact(micros + S.lease * 1000)

-- The lease itself, without what its host keeps of it.
local function hand(name, epoch, p, origin, jar)
  local depth = 0
  if p.robots then
    bump('rleased', 1)
  else
    bump('queued', -1)
    bump('leased', 1)
    depth = p.depth or 0
    if not p.detached then
      local value = seen(p.fp)
      depth = depthOf(value)
      if LEVELS then
        setSeen(p.fp, valueOf(stateOf(value) == RELINK_QUEUED and RELINK_HELD or HELD, depth))
        local carried = call('HGET', CARRIED, p.fp)
        if carried then
          change(p)
          p.attempt, p.crashes = byte(carried, 1, 2)
          call('HDEL', CARRIED, p.fp)
        end
      end
    end
  end
  local entry = writePlace(p)
  local token = nonce .. format('%03d', given)
  writeLease(token, epoch, p, depth, entry)
  local n = given * 2
  deadlines[n + 1] = DEADLINE
  deadlines[n + 2] = token
  n = given * 7
  leases[n + 1] = token
  leases[n + 2] = name
  leases[n + 3] = p.priority
  leases[n + 4] = depth
  leases[n + 5] = entry
  leases[n + 6] = origin and origin.version or 0
  leases[n + 7] = jar
  given = given + 1
end

local function give(h, p, origin)
  hand(h.name, h.epoch, p, origin, get('jars') == 1 and call('HGET', J .. ':ck', siteOf(h)) or '')
  local me = gateOf(h).me
  noteAsk(h, true)
  me.inFlight = me.inFlight + 1
  me.awaiting = me.awaiting + 1
  h.leased = h.leased + 1
  h.turn = now
  mark(h)
end

-- The next entry that has not been lowered since; with it, its lane.
local function popLive(h)
  while #h.lanes > 0 and levelOfLane(h.lanes[1]) >= 0 and isOpen(levelOfLane(h.lanes[1])) do
    local entry, lane = pop(h)
    local level, priority = read('>HB', lane)
    local p = readPlace(entry, h.name, 99 - priority)
    if not LEVELS or p.detached or depthOf(seen(p.fp)) == level - 1 then return p, lane, entry end
  end
  return nil
end

-- The lease of an entry that was popped, or of the robots.txt that it needs; none while another worker asks for that.
local function turnTo(h, p, lane, entry)
  if S.robots ~= 1 then
    give(h, p, nil)
    return true
  end
  local o = originOf(originNameOf(p), h.name)
  if o.kind ~= '-' and o.expires > now then
    give(h, p, o)
    return true
  end
  unpop(h, lane, entry)
  h.blocked = true
  if o.pending == 1 then return false end
  o.pending = 1
  writeOrigin(o)
  local body = pack('<H', #o.origin) .. o.origin .. o.origin .. '/robots.txt'
  give(h, { fp = string.rep('\0', 8), flags = ROBOTS_HOP + 32, attempt = 0, crashes = 0, host = h.name, priority = 0, body = body, robots = true, origin = o.origin, at = 3 }, nil)
  return true
end

-- One lease of the host, or none after it was put where it belongs.
local function turn(h)
  touch()
  mark(h)
  if h.lanes[1] == ROBOTS_LANE then
    local entry = pop(h)
    give(h, readPlace(entry, h.name, 0), nil)
    return true
  end
  local p, lane, entry = popLive(h)
  if not p then return false end
  return turnTo(h, p, lane, entry)
end

local origins = {}
local function originHere(p)
  local name = originNameOf(p)
  local o = origins[name]
  if not o then
    o = originOf(name, p.host)
    origins[name] = o
  end
  return o
end

-- Nearly every turn: no rest is owed, no other crawl asks for the host, and a slot is free behind this one; then its texts alone change.
-- Nil: nothing was done, it must be looked at.
local function turnQuickly(name)
  local record, gate = RAW[name], GATE_RAW[name]
  if LEVELS or HR[name] or not record or gate == nil or S.hosts == 1 or get('jars') == 1 then return nil end
  local flags = byte(record)
  if flags % 2 == 1 or flags % 32 >= 16 then return nil end
  local whole = flags % 64 >= 32
  local _, site, leased, pos, turned, settled, stretch, limit, usual, fixed, crawlDelay, patchedDelay, window, goods, baseline, recent, epoch, steps, held,
    notBefore, answers, latency = read(whole and LONG or SHORT, record)
  local from = SHORT_BYTES
  if whole then
    from = from + WHOLE_BYTES
  else
    limit, fixed, crawlDelay, patchedDelay, epoch, steps, held, notBefore = S.conc, math.max(0, S.delay), 0, -1, 0, 0, 0, 0
    window = flags % 128 >= 64 and limit or math.min(2, limit)
  end
  if pos ~= 1 or steps > 0 or crawlDelay > 0 or (patchedDelay >= 0 and patchedDelay or fixed) > 0 then return nil end
  local slots = flags % 4 >= 2 and math.max(1, math.min(window, limit)) or limit
  local last, gateNotBefore, id, gap, asked, inFlight, awaiting = -INF, -INF, S.id, 0, 0, 0, 0
  if gate then
    if #gate ~= 16 + USE_BYTES then return nil end
    last, gateNotBefore, id, gap, asked, inFlight, awaiting = read(ONE_USE, gate)
  end
  if id ~= S.id or inFlight + 1 >= slots or math.max(last, notBefore, gateNotBefore, held, turned) > now then return nil end
  local lane = sub(record, from + 1, from + 4)
  if lane == '' or lane == ROBOTS_LANE then return nil end
  touch()
  local key = laneKey(name, lane)
  local entry = call(DFS and 'RPOP' or 'LPOP', key)
  local p = readPlace(entry, name, 99 - byte(lane, 3))
  local origin = S.robots == 1 and originHere(p) or nil
  local empty = call('EXISTS', key) == 0
  if empty or (origin and (origin.kind == '-' or origin.expires <= now)) then
    local h = findHost(name)
    if empty then closeLane(h) end
    mark(h)
    return turnTo(h, p, lane, entry)
  end
  hand(name, epoch, p, origin, '')
  if whole then
    record = pack(LONG, flags, site, leased + 1, pos, now, settled, stretch, limit, usual, fixed, crawlDelay, patchedDelay, window, goods, baseline, recent,
      epoch, steps, held, notBefore, answers, latency) .. sub(record, from + 1)
  else
    record = pack(SHORT, flags, site, leased + 1, pos, now, settled) .. sub(record, from + 1)
  end
  if not quickRecords[name] then HD[#HD + 1] = name end
  RAW[name] = record
  quickRecords[name] = record
  gate = pack(ONE_USE, last, gateNotBefore, id, 0, math.min(65535, slots), inFlight + 1, awaiting + 1, now, 0)
  GATE_RAW[name] = gate
  quickGates[name] = gate
  return true
end

local function rateAllows() return not S.rpm or get('rate') <= now end
local function noteRate()
  if not S.rpm then return end
  local interval = 60000 / S.rpm
  -- A timer that rings a little late must not lower the rate.
  set('rate', (now - get('rate') <= interval * 0.1 and get('rate') or now) + interval)
end

-- One lease a turn: a host that had its turn goes behind the others that are due.
local served, hostsServed = {}, 0
local function noteServed(name)
  if not served[name] then hostsServed = hostsServed + 1 end
  served[name] = true
end

local function wantsMore() return given < most and hostsServed < MOST_HOSTS and freePlaces() > 0 and rateAllows() end

local function takeTurns()
  local queue, first, last, offset = {}, 1, 0, 0
  local page = math.min(most, MOST_HOSTS) + 16
  local till = format('%d', floor(now * FINE))
  while wantsMore() do
    if first > last then
      local due = call('ZRANGEBYSCORE', W, '-inf', till, 'LIMIT', offset, page)
      if #due == 0 then return end
      offset = offset + #due
      queue, first, last = {}, 1, 0
      readAhead(due)
      for _, name in ipairs(due) do
        if not served[name] then
          last = last + 1
          queue[last] = name
        end
      end
      if last == 0 and #due < page then return end
    else
      local name = queue[first]
      first = first + 1
      local quickly = turnQuickly(name)
      if quickly and not HR[name] then
        noteRate()
        noteServed(name)
        last = last + 1
        queue[last] = name
      else
        local h = findHost(name)
        if quickly == nil and dueOf(h) > now then
          if #h.gate.others > 0 then noteAsk(h, false) end
          mark(h)
        else
          if quickly == nil then quickly = turn(h) end
          if quickly then
            noteRate()
            noteServed(name)
          end
          if #h.lanes > 0 and (not LEVELS or levelOfLane(h.lanes[1]) < 0 or isOpen(levelOfLane(h.lanes[1]))) and dueOf(h) <= now then
            last = last + 1
            queue[last] = name
          end
        end
      end
    end
  end
end

-- What a claim waits for when no time is known at which something falls due.
local function idleCause(limited, why)
  if limited then return 'limit' end
  if why then return why end
  if call('ZCARD', W) + get('parked') > 0 then return 'level' end
  return get('leased') + get('rleased') > 0 and 'leased' or 'seeds'
end

local function nothingDue()
  local at, cause, why = INF, nil, nil
  local function sooner(time, reason)
    if time < at then at, cause = time, reason end
  end
  local limited = freePlaces() <= 0
  local first = call('ZRANGE', W, 0, 0)[1]
  if first then
    local due
    due, why = dueOf(findHost(first))
    if not limited then
      if S.rpm and (due <= now or due < get('rate')) then sooner(get('rate'), 'rate') else sooner(due, why) end
    end
  end
  local retry = call('ZRANGE', J .. ':rt', 0, 0, 'WITHSCORES')
  if not limited and retry[2] then sooner(tonumber(retry[2]), 'retry') end
  local expiring = call('ZRANGE', X, 0, 0, 'WITHSCORES')
  if expiring[2] then sooner(tonumber(expiring[2]) / 1000, idleCause(limited, why)) end
  return { 'wait', at == INF and '-1' or exact(math.max(0, at - now)), cause or idleCause(limited, why) }
end

reap()
recallRetries()
flushLevels()
completeIfOver()
if get('over') == 1 then
  flush()
  return { 'drained' }
end
if S.ctl == 'pause' or S.ctl == 'drain' or S.ctl == 'now' or (S.items and itemRoom() == 0) then
  flush()
  return { 'held', S.ctl == 'pause' and 'paused' or 'stopping' }
end
if get('oin') - get('oout') >= S.outMax or get('oinb') - get('ooutb') >= S.outBytes then
  flush()
  return { 'held', 'outbox-full' }
end
flushHosts()
takeTurns()
while LEVELS and wantsMore() do
  flushLevels()
  if not unpark() then break end
  takeTurns()
end
if given > 0 and now - get('alive') > 5000 then
  set('alive', exact(now))
  call('HSET', T .. ':alive', S.id, exact(now))
end
flushLevels()
completeIfOver()
flush()
if given > 0 then
  local seeds = call('LRANGE', J .. ':ns', seedsKnown, -1)
  return { 'leases', leases, seedsKnown + #seeds, seeds }
end
if get('over') == 1 then return { 'drained' } end
return nothingDue()

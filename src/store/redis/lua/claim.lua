-- claim: ARGV 3 most leases, 4 nonce of the client for this call, 5 how many of the URLs that became seeds it knows.
local MOST_REAPED, MOST_RECALLED, UNPARKED = 32, 256, 256
local MAX_CRASHES = 3
local CRASHED_ROBOTS = 300000
local most, nonce, seedsKnown = math.min(tonumber(ARGV[3]), 128), ARGV[4], tonumber(ARGV[5])
if get('over') == 1 then return { 'drained' } end

-- Expired leases go back to the front of their queue, the last one first, so that they come again in their order; the third loss of one drops it.
local function reap()
  local expired = call('ZRANGEBYSCORE', X, '-inf', exact(now), 'LIMIT', 0, MOST_REAPED)
  readLeasesAhead(expired)
  for n = #expired, 1, -1 do
    touch()
    local e = readLease(expired[n])
    local p = e.place
    p.crashes = p.crashes + 1
    local given = p.crashes >= MAX_CRASHES
    local relink = isRelink(p)
    endLease(e)
    if not given then
      requeueFront(p)
    elseif p.robots then
      settleRobots(p, 'u', CRASHED_ROBOTS, '{"code":"robots-unavailable","why":"crashed"}', nil)
    else
      if not relink then sendCrash(p, e.depth) end
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
    for _, name in ipairs(names) do placeHost(hostOf(name, 0, 0)) end
    flushPlaced()
    return true
  end
  return false
end

local leases = {}

local function give(h, p, origin)
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
          p.attempt, p.crashes = byte(carried, 1, 2)
          call('HDEL', CARRIED, p.fp)
        end
      end
    end
  end
  local token = nonce .. string.format('%03d', #leases / 7)
  writeLease({ token = token, bits = 0, epoch = h.epoch, depth = depth, place = p })
  deadlines[#deadlines + 1] = exact(now + S.lease)
  deadlines[#deadlines + 1] = token
  local me = gateOf(h).me
  noteAsk(h, true)
  me.inFlight = me.inFlight + 1
  me.awaiting = me.awaiting + 1
  h.leased = h.leased + 1
  h.turn = now
  mark(h)
  leases[#leases + 1] = token
  leases[#leases + 1] = h.name
  leases[#leases + 1] = p.priority
  leases[#leases + 1] = depth
  leases[#leases + 1] = writePlace(p)
  leases[#leases + 1] = origin and origin.version or 0
  leases[#leases + 1] = get('jars') == 1 and call('HGET', J .. ':ck', siteOf(h)) or ''
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
  if S.robots ~= 1 then
    give(h, p, nil)
    return true
  end
  local o = originOf(p.origin, h.name)
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

local function rateAllows() return not S.rpm or get('rate') <= now end
local function noteRate()
  if not S.rpm then return end
  local interval = 60000 / S.rpm
  -- A timer that rings a little late must not lower the rate.
  set('rate', (now - get('rate') <= interval * 0.1 and get('rate') or now) + interval)
end

-- One lease a turn: a host that had its turn goes behind the others that are due.
local function takeTurns()
  local queue, first, offset = {}, 1, 0
  local page = most + 16
  while #leases / 7 < most and freePlaces() > 0 and rateAllows() do
    if first > #queue then
      local due = call('ZRANGEBYSCORE', W, '-inf', exact(now), 'LIMIT', offset, page)
      if #due == 0 then return end
      offset = offset + #due
      queue, first = {}, 1
      readAhead(due)
      for _, name in ipairs(due) do
        local h = findHost(name)
        if not h.served then queue[#queue + 1] = h end
      end
      if #queue == 0 and #due < page then return end
    else
      local h = queue[first]
      first = first + 1
      if dueOf(h) <= now then
        if turn(h) then
          noteRate()
          h.served = true
        end
        if #h.lanes > 0 and (levelOfLane(h.lanes[1]) < 0 or isOpen(levelOfLane(h.lanes[1]))) and dueOf(h) <= now then queue[#queue + 1] = h end
      else
        if #h.gate.others > 0 then noteAsk(h, false) end
        mark(h)
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
  if expiring[2] then sooner(tonumber(expiring[2]), idleCause(limited, why)) end
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
if S.ctl == 'pause' or S.ctl == 'drain' or S.ctl == 'now' then
  flush()
  return { 'held', S.ctl == 'pause' and 'paused' or 'stopping' }
end
if get('oin') - get('oout') >= S.outMax or get('oinb') - get('ooutb') >= S.outBytes then
  flush()
  return { 'held', 'outbox-full' }
end
flushHosts()
takeTurns()
while LEVELS and #leases / 7 < most and freePlaces() > 0 and rateAllows() do
  flushLevels()
  if not unpark() then break end
  takeTurns()
end
if #leases > 0 and now - get('alive') > 5000 then
  set('alive', exact(now))
  call('HSET', T .. ':alive', S.id, exact(now))
end
flushLevels()
completeIfOver()
flush()
if #leases > 0 then
  local seeds = call('LRANGE', J .. ':ns', seedsKnown, -1)
  return { 'leases', leases, seedsKnown + #seeds, seeds }
end
if get('over') == 1 then return { 'drained' } end
return nothingDue()

-- Queues: a list for each host, level and priority, their directory in the host's record, and the two-level window (decision 4).
-- A lane's name sorts as it is served: robots requests, then lower levels, larger priorities, what came back before what is new.
local DFS, LEVELS = S.dfs == 1, S.levels == 1

local function laneOf(level, priority, front) return pack('>HBB', level + 1, 99 - priority, front and 0 or 1) end
local function laneKey(name, lane)
  if lane == ROBOTS_LANE then return J .. ':q:r:' .. name end
  local level, priority, back = read('>HBB', lane)
  return J .. ':q:' .. (level - 1) .. ':' .. (99 - priority) .. (back == 0 and 'f' or '') .. ':' .. name
end
local function levelOfLane(lane) return read('>H', lane) - 1 end

local function openLane(h, lane)
  local lanes = h.lanes
  local at = 1
  while at <= #lanes and lanes[at] < lane do at = at + 1 end
  if lanes[at] == lane then return end
  table.insert(lanes, at, lane)
  if at == 1 and lane ~= ROBOTS_LANE then h.blocked = false end
end

local function closeLane(h)
  table.remove(h.lanes, 1)
  h.blocked = false
end

-- Whether the host has such a queue already: then a new entry changes nothing else of it, and its record need not be read in full.
local function hasLane(name, lane)
  if HR[name] or DFS then return false end
  local text = RAW[name]
  if text == nil then
    text = call('HGET', HOSTS, name)
    RAW[name] = text
  end
  if not text then return false end
  local from = 1 + SHORT_BYTES + (byte(text) % 64 >= 32 and WHOLE_BYTES or 0)
  for i = from, #text, 4 do
    if sub(text, i, i + 3) == lane then return true end
  end
  return false
end

-- Makes sure that the host has such a queue.
local function demandLane(name, isLocal, site, lane)
  if hasLane(name, lane) then return end
  local h = hostOf(name, isLocal, site)
  openLane(h, lane)
  if DFS then h.blocked = false end
  mark(h)
end

-- What a step adds is gathered by host, level and priority.
local pushed, pushKeys = {}, {}
local function pushBack(name, isLocal, site, level, priority, entry)
  local lanes = pushed[name]
  if not lanes then
    lanes = {}
    pushed[name] = lanes
  end
  local id = level * 256 + priority
  local list = lanes[id]
  if not list then
    local lane = laneOf(level, priority, false)
    list = {}
    lanes[id] = list
    demandLane(name, isLocal, site, lane)
    list.key = laneKey(name, lane)
    pushKeys[#pushKeys + 1] = list
  end
  list[#list + 1] = entry
end

local function flushPushes()
  for _, list in ipairs(pushKeys) do
    callMany('RPUSH', list.key, list)
  end
  pushed, pushKeys = {}, {}
end

local function pushFront(h, level, priority, entry)
  local lane = laneOf(level, priority, DFS)
  openLane(h, lane)
  call(DFS and 'RPUSH' or 'LPUSH', laneKey(h.name, lane), entry)
  h.blocked = false
  mark(h)
end

local function pushRobots(h, entry)
  openLane(h, ROBOTS_LANE)
  call('RPUSH', laneKey(h.name, ROBOTS_LANE), entry)
  h.blocked = false
  mark(h)
end

-- The first entry of the host's first lane, and that lane.
local function pop(h)
  local lane = h.lanes[1]
  local key = laneKey(h.name, lane)
  local entry = call((DFS or lane == ROBOTS_LANE) and 'RPOP' or 'LPOP', key)
  if call('EXISTS', key) == 0 then closeLane(h) end
  return entry, lane
end

-- What was popped is put back where it was.
local function unpop(h, lane, entry)
  openLane(h, lane)
  call(DFS and 'RPUSH' or 'LPUSH', laneKey(h.name, lane), entry)
end

-- Levels: what is queued, delayed or leased at each. The window rises to the lowest that has something.
local live = {}
local function addLevel(level) if LEVELS then live[level] = (live[level] or 0) + 1 end end
local function dropLevel(level) if LEVELS then live[level] = (live[level] or 0) - 1 end end
local function flushLevels()
  local moved = false
  for level, by in pairs(live) do
    if by ~= 0 then
      local left = call('HINCRBY', J .. ':lv', level, by)
      if left == 0 then call('HDEL', J .. ':lv', level) end
      if left == 0 or left == by then moved = true end
    end
  end
  live = {}
  if not moved then return end
  local lowest = INF
  for _, level in ipairs(call('HKEYS', J .. ':lv')) do lowest = math.min(lowest, tonumber(level)) end
  if lowest < INF and lowest ~= get('base') then set('base', lowest) end
end
local function isOpen(level) return not LEVELS or level <= get('base') + 1 end

-- What placed hosts come to, gathered for few calls.
local waits, waitsNot, records, gates = {}, {}, {}, {}
local function flushPlaced()
  callMany('ZREM', W, waitsNot)
  callMany('ZADD', W, waits)
  callMany('HSET', HOSTS, records)
  callMany('HSET', GATES, gates)
  waits, waitsNot, records, gates = {}, {}, {}, {}
end

-- The place in the waiting set. A little early: whoever is met before its time is looked at again.
local function scoreOf(due)
  ties = ties + 1
  return due == INF and '+inf' or format('%d', floor(due * FINE) - STEPS - 12 + ties % STEPS)
end

-- Writes a host and puts it where it belongs: waiting (1), parked until its level opens (level + 2), or nowhere (0). I1: never in two places.
local function placeHost(h)
  local lane = h.lanes[1]
  local pos = 0
  if lane then
    local level = levelOfLane(lane)
    pos = (level < 0 or isOpen(level)) and 1 or level + 2
  end
  if pos ~= h.pos then
    if h.pos == 1 then
      waitsNot[#waitsNot + 1] = h.name
    elseif h.pos > 1 then
      local parked = J .. ':pk:' .. (h.pos - 2)
      call('ZREM', parked, h.name)
      bump('parked', -1)
      if call('EXISTS', parked) == 0 then call('ZREM', J .. ':pl', h.pos - 2) end
    else
      h.turn = math.max(h.turn, now)
    end
    if pos > 1 then
      ties = ties + 1
      call('ZADD', J .. ':pk:' .. (pos - 2), format('%d', floor(now * FINE) + ties), h.name)
      call('ZADD', J .. ':pl', pos - 2, pos - 2)
      bump('parked', 1)
    end
    h.pos = pos
    h.moved = true
  end
  if pos == 1 and h.moved then
    local due = dueOf(h)
    local me = h.gate and h.gate.me
    if me and me.asked > 0 and (me.slots ~= slotsOf(h) or me.gap ~= delayOf(h) * h.stretch) then
      -- By these, progress.lua tells whether a gate must be looked at closer.
      me.slots, me.gap = slotsOf(h), delayOf(h) * h.stretch
      h.gate.dirty = true
    end
    waits[#waits + 1] = scoreOf(due)
    waits[#waits + 1] = h.name
  end
  h.moved = false
  records[#records + 1] = h.name
  records[#records + 1] = writeHost(h)
  if h.gate and h.gate.dirty then
    gates[#gates + 1] = h.name
    gates[#gates + 1] = writeGate(h.gate)
    h.gate.dirty = false
  end
  h.dirty = false
end

local function flushHosts()
  local list = HD
  HD = {}
  for _, h in ipairs(list) do
    if type(h) == 'table' then
      placeHost(h)
    elseif not HR[h] then
      -- It had a turn, of which its texts alone tell.
      waits[#waits + 1] = scoreOf(now)
      waits[#waits + 1] = h
    end
  end
  for name, text in pairs(quickRecords) do
    if not HR[name] then
      records[#records + 1] = name
      records[#records + 1] = text
    end
  end
  for name, text in pairs(quickGates) do
    if not (HR[name] and HR[name].gate) then
      gates[#gates + 1] = name
      gates[#gates + 1] = text
    end
  end
  quickRecords, quickGates = {}, {}
  flushPlaced()
end

local forgetSome
do
  local MOST_REMEMBERED = 20000

  -- Nothing of it is queued or under way, its clock has passed, and it has taught nothing that must be kept.
  local function isForgettable(h)
    local taught = h.tuned or h.patched or h.crawlDelay > 0 or h.epoch > 0
    if #h.lanes > 0 or h.leased > 0 or taught then return false end
    local g = gateOf(h)
    return g.me.inFlight == 0 and now > math.max(g.last + delayOf(h) * h.stretch, h.notBefore, g.notBefore, h.held)
  end

  -- A wide crawl meets millions of hosts of which it asks one page each: for each new one three of the others are looked at, so that the idle run out.
  function forgetSome()
    if fresh == 0 or call('HLEN', HOSTS) < MOST_REMEMBERED then return end
    for _, name in ipairs(call('HRANDFIELD', HOSTS, math.min(300, fresh * 3))) do
      local h = findHost(name)
      if h and not h.dirty and isForgettable(h) then
        call('HDEL', HOSTS, name)
        if #h.gate.others == 0 then call('HDEL', GATES, name) end
      end
    end
  end
end

-- Adding requests: new ones are queued, known ones lowered, and redirect chains that end at a known URL hand over what they owe.
-- A group: host | count 2, is local 1, length of its site 1 | links. A link:
--   opts 1 (1: fingerprint of the hop that led here follows, 2: packet of its listing as a repetition follows) | depth 2 | priority 1 | … | entry (places.lua)

-- Fails before anything is written when the arguments are not what this script expects.
local function isLink(a)
  if not a or #a < 13 then return false end
  local opts, low, high, priority, at = byte(a, 1, 4)
  if priority > 99 and priority < 157 or low + high * 256 > DEEPEST then return false end
  at = 5
  if opts > 0 then
    if opts % 2 == 1 then at = at + 8 end
    if opts >= 2 then
      if #a < at + 3 then return false end
      at = at + 4 + read('<I4', a, at)
    end
    if #a < at + 8 then return false end
  end
  local flags = byte(a, at + 8)
  return flags % 8 <= 3 and flags < 128
end

-- Groups all of whose links are ordinary, by the index of their host.
local plain = {}
local allPlain = true
local function checkGroups(i, groups)
  for _ = 1, groups do
    local head = ARGV[i + 1]
    if not head or #head ~= 4 then return nil end
    local low, high = byte(head, 1, 2)
    local last = i + 1 + low + high * 256
    local ordinary = true
    for k = i + 2, last do
      local a = ARGV[k]
      if not isLink(a) then return nil end
      if byte(a) > 0 or byte(a, 13) >= 64 then ordinary = false end
    end
    plain[i] = ordinary
    allPlain = allPlain and ordinary
    i = last + 1
  end
  return i
end

local added, known, lowered, owed, repeated = 0, 0, 0, {}, {}

local addLink
do
  local REDIRECT, SEED = 2, 0

  -- The chain of redirects ends at a known URL: its outputs are due now.
  local function endChain(p)
    if p.owes then owed[#owed + 1] = owedOf(p) end
  end

  -- A shorter way to a known URL (decision 4).
  local function lower(isLocal, site, p, depth, before)
    local state = stateOf(before)
    if not LEVELS then
      setSeen(p.fp, valueOf(state, depth))
      return
    end
    local relink = state == DONE
    setSeen(p.fp, valueOf(relink and RELINK_QUEUED or state, depth))
    if state == DROPPED then return end
    addLevel(depth)
    if relink then
      bump('done', -1)
      bump('queued', 1)
    else
      dropLevel(depthOf(before))
    end
    if not relink and state ~= QUEUED and state ~= RELINK_QUEUED then return end
    local carried = call('HGET', CARRIED, p.fp)
    forgive(p)
    if carried then
      change(p)
      p.attempt, p.crashes = byte(carried, 1, 2)
      -- The target keeps its place at the lower level, but the chain that had queued it ends here.
      if #carried > 2 then
        owed[#owed + 1] = sub(carried, 3)
        call('HSET', CARRIED, p.fp, sub(carried, 1, 2))
      end
    end
    pushBack(p.host, isLocal, site, depth, p.priority, writePlace(p))
  end

  function addLink(host, isLocal, site, a, inSettle, recorded)
    local opts, depth, priority, at = read('<BHb', a)
    local hop, listing
    if opts % 2 == 1 then
      hop = sub(a, at, at + 7)
      at = at + 8
    end
    if opts >= 2 then
      local size
      size, at = read('<I4', a, at)
      listing = sub(a, at, at + size - 1)
      at = at + size
    end
    local taking = get('over') ~= 1 and get('fin') ~= 1
    if taking and byte(a, at + 8) < 64 and not listing then
      local fp = sub(a, at, at + 7)
      local before = putIfAbsent(V, fp, valueOf(QUEUED, depth))
      if before == nil then
        added = added + 1
        addLevel(depth)
        pushBack(host, isLocal, site, LEVELS and depth or 0, priority, sub(a, at))
        return
      end
      known = known + 1
      if depth < depthOf(before) then
        lowered = lowered + 1
        lower(isLocal, site, readPlace(sub(a, at), host, priority), depth, before)
      end
      return
    end
    local p = readPlace(sub(a, at), host, priority)
    if p.owes and recorded and hop then
      -- One target a hop: another one was found under a lease that is lost.
      if recorded[hop] then recorded[hop] = nil else forgive(p) end
    end
    local taken = taking or (get('over') ~= 1 and (p.hop == REDIRECT or (inSettle and p.hop == SEED)))
    if not taken then
      known = known + 1
      endChain(p)
      return
    end
    if p.detached then
      putIfAbsent(V, p.fp, valueOf(DONE, depth))
      added = added + 1
      addLevel(depth)
      pushBack(host, isLocal, site, LEVELS and depth or 0, priority, writePlace(p))
      return
    end
    local before = putIfAbsent(V, p.fp, valueOf(QUEUED, depth))
    if before == nil then
      added = added + 1
      addLevel(depth)
      if p.owes then carry(p) end
      pushBack(host, isLocal, site, LEVELS and depth or 0, priority, writePlace(p))
      return
    end
    known = known + 1
    endChain(p)
    if listing and p.hop == 1 then repeated[#repeated + 1] = listing end
    if depth < depthOf(before) then
      lowered = lowered + 1
      lower(isLocal, site, p, depth, before)
    end
  end
end

-- A group of ordinary links, where levels do not hold: nothing of one but its fingerprint need be looked at.
local texts, keys = {}, {}
local function addPlain(host, isLocal, site, from, to)
  local entries, n, key, at = {}, 0, nil, nil
  for k = from, to do
    local a = ARGV[k]
    local _, low, high, priority = byte(a, 1, 4)
    local depth = low + high * 256
    -- A number costs more to hand over than a text.
    local value = texts[depth]
    if not value then
      value = format('%d', valueOf(QUEUED, depth))
      texts[depth] = value
    end
    local fp = sub(a, 5, 12)
    local before = putIfAbsent(V, fp, value)
    if before == nil then
      added = added + 1
      if priority ~= at then
        if n > 0 then callMany('RPUSH', key, entries) end
        entries, n, at = {}, 0, priority
        local lane = laneOf(0, priority < 128 and priority or priority - 256, false)
        demandLane(host, isLocal, site, lane)
        if not keys[lane] then keys[lane] = laneKey('', lane) end
        key = keys[lane] .. host
      end
      n = n + 1
      entries[n] = sub(a, 5)
    else
      known = known + 1
      if depth < depthOf(before) then
        lowered = lowered + 1
        setSeen(fp, valueOf(stateOf(before), depth))
      end
    end
  end
  if n == 1 then call('RPUSH', key, entries[1]) elseif n > 0 then callMany('RPUSH', key, entries) end
end

-- `recordedNow`: makes the set of fingerprints of the hops whose record this step writes; nil: all of them are in order.
local function addGroups(i, groups, inSettle, recordedNow)
  local names, k = {}, i
  for _ = 1, groups do
    if RAW[ARGV[k]] == nil and not HR[ARGV[k]] then names[#names + 1] = ARGV[k] end
    local low, high = byte(ARGV[k + 1], 1, 2)
    k = k + 2 + low + high * 256
  end
  if #names > 1 then readMany(HOSTS, names, RAW) end
  local recorded = not allPlain and recordedNow and recordedNow() or nil
  local taking = not LEVELS and not DFS and get('over') ~= 1 and get('fin') ~= 1
  for _ = 1, groups do
    local host = ARGV[i]
    local low, high, isLocal, site = byte(ARGV[i + 1], 1, 4)
    local last = i + 1 + low + high * 256
    if taking and plain[i] then
      addPlain(host, isLocal, site, i + 2, last)
    else
      for k = i + 2, last do addLink(host, isLocal, site, ARGV[k], inSettle, recorded) end
    end
    i = last + 1
  end
  bump('queued', added)
  bump('places', added)
  return i
end

-- Adding requests: new ones are queued, known ones lowered, and redirect chains that end at a known URL hand over what they owe.
-- A group: host | count 2, is local 1, length of its site 1 | links. A link:
--   opts 1 (1: fingerprint of the hop that led here follows, 2: packet of its listing as a repetition follows) | depth 2 | priority 1 | … | entry (places.lua)

-- Fails before anything is written when the arguments are not what this script expects.
local function checkGroups(i, groups)
  for _ = 1, groups do
    local n = read('<H', ARGV[i + 1])
    for k = i + 2, i + 1 + n do
      local a = ARGV[k]
      if not a or #a < 13 then return nil end
      local opts, depth, priority, at = read('<BHb', a)
      if opts % 2 == 1 then at = at + 8 end
      if opts >= 2 then at = at + 4 + read('<I4', a, at) end
      if priority < -99 or priority > 99 or depth > DEEPEST or #a < at + 8 or byte(a, at + 8) % 8 > 3 or byte(a, at + 8) >= 128 then return nil end
    end
    i = i + 2 + n
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
      -- Nearly every link: nothing of it but its fingerprint need be looked at.
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
    if p.owes and recorded and hop and not recorded[hop] then forgive(p) end
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

-- `recorded`: fingerprints of the hops whose record this step writes; nil: all of them are in order.
local function addGroups(i, groups, inSettle, recorded)
  local names, k = {}, i
  for _ = 1, groups do
    if RAW[ARGV[k]] == nil and not HR[ARGV[k]] then names[#names + 1] = ARGV[k] end
    k = k + 2 + read('<H', ARGV[k + 1])
  end
  readAhead(names)
  for _ = 1, groups do
    local host = ARGV[i]
    local n, isLocal, site = read('<HBB', ARGV[i + 1])
    for k = i + 2, i + 1 + n do addLink(host, isLocal, site, ARGV[k], inSettle, recorded) end
    i = i + 2 + n
  end
  bump('queued', added)
  bump('places', added)
  return i
end

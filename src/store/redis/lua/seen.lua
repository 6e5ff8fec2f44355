-- Maps from fingerprints to small numbers: hashes small enough to stay in the compact encoding, multiplied by linear hashing.
-- b: bits, m: 2 to their power, p: split pointer, n: entries.
local function openMap(name)
  local bits, entries = get(name .. 'b'), get(name .. 'n')
  return { name = name, key = J .. ':' .. name, b = bits, m = 2 ^ bits, p = get(name .. 'p'), n = entries, before = entries }
end

local function bucketOf(map, fp)
  local a, b, c, d = byte(fp, 1, 4)
  local h = a + b * 256 + c * 65536 + d * 16777216
  local i = h % map.m
  if i < map.p then i = h % (map.m * 2) end
  return map.key .. i
end

local closeMap
do
  -- Mean load of a bucket; those not yet split in a round hold up to a half more, far below the 128 entries at which the encoding changes.
  local LOAD = 56
  local SPLITS_PER_STEP = 64

  local function split(map)
    local m = map.m
    local old = map.key .. map.p
    local all = call('HGETALL', old)
    local stay, go = {}, {}
    for i = 1, #all, 2 do
      local to = read('<I4', all[i]) % (m * 2) == map.p and stay or go
      to[#to + 1] = all[i]
      to[#to + 1] = all[i + 1]
    end
    if #go > 0 then
      call('DEL', old)
      if #stay > 0 then call('HSET', old, unpack(stay)) end
      call('HSET', map.key .. (map.p + m), unpack(go))
    end
    map.p = map.p + 1
    if map.p == m then
      map.p = 0
      map.b = map.b + 1
      map.m = m * 2
    end
  end

  function closeMap(map)
    if map.n == map.before then return end
    local splits = 0
    while map.n > (map.m + map.p) * LOAD and splits < SPLITS_PER_STEP do
      split(map)
      splits = splits + 1
    end
    set(map.name .. 'b', map.b)
    set(map.name .. 'p', map.p)
    set(map.name .. 'n', map.n)
  end
end

-- What was there, or nil after the value was put.
local function putIfAbsent(map, fp, value)
  local key = bucketOf(map, fp)
  if call('HSETNX', key, fp, value) == 0 then return tonumber(call('HGET', key, fp)) end
  map.n = map.n + 1
  return nil
end

-- The seen-map. Value: smallest depth × 8 + state; the state is kept up to date only where levels hold, for nothing else needs it.
local QUEUED, HELD, DONE, DROPPED, RELINK_QUEUED, RELINK_HELD = 0, 1, 2, 3, 4, 5
local DEEPEST = 8191
local V = openMap('v')

local function valueOf(state, depth) return depth * 8 + state end
local function stateOf(value) return value % 8 end
local function depthOf(value) return floor(value / 8) end
local function seen(fp)
  local value = call('HGET', bucketOf(V, fp), fp)
  return value and tonumber(value)
end
local function setSeen(fp, value) call('HSET', bucketOf(V, fp), fp, value) end

-- remaining: ARGV 3 what (host, delayed), 4 name of the host or the rank, 5 number of its lane, 6 offset, 7 most. Answers whether the lane went on, and of each
-- entry: host, priority, depth, entry. Left out: robots requests, entries lowered since, pages that are only fetched again for their links
-- or the rest of their items.
local out = {}
local function list(p, level, entry)
  if p.robots or cutOf(p) then return end
  local depth = p.depth or 0
  if not p.detached then
    local value = seen(p.fp)
    local state = stateOf(value)
    depth = depthOf(value)
    if LEVELS and (state == RELINK_QUEUED or state == RELINK_HELD or (level and depth ~= level)) then return end
  end
  out[#out + 1] = p.host
  out[#out + 1] = p.priority
  out[#out + 1] = depth
  out[#out + 1] = entry
end

local offset, most = tonumber(ARGV[6]), tonumber(ARGV[7])
if ARGV[3] == 'delayed' then
  local members = call('ZRANGE', J .. ':rt', offset, offset + most - 1)
  for _, member in ipairs(members) do
    local priority, _, _, length, at = read('<bBBH', member, 9)
    local entry = sub(member, at + length)
    list(readPlace(entry, sub(member, at, at + length - 1), priority), nil, entry)
  end
  return { #members, 0, out }
end
local h = findHost(ARGV[4])
local lane = h and h.lanes[tonumber(ARGV[5])]
if not lane then return { 0, 0, out } end
local entries = call('LRANGE', laneKey(h.name, lane), offset, offset + most - 1)
if lane ~= ROBOTS_LANE then
  local level, priority = read('>HB', lane)
  for _, entry in ipairs(entries) do list(readPlace(entry, h.name, 99 - priority), level - 1, entry) end
end
return { #entries, 1, out }

-- What every script on a crawl begins with: the names of keys, the moment, and the crawl's own numbers.
-- KEYS: {ns}, {ns}:<id>. ARGV 1: a moment that a test sets ('' everywhere else: the server's clock), 2: a random number.
local T, J = KEYS[1], KEYS[2]
local call, sub, byte, char, floor = redis.call, string.sub, string.byte, string.char, math.floor
local pack, read = struct.pack, struct.unpack
local INF = math.huge

-- Milliseconds, and the same in whole microseconds: scores that are whole numbers are found faster.
local now, micros
if ARGV[1] ~= '' then
  now = tonumber(ARGV[1])
  micros = now * 1000
else
  local t = call('TIME')
  now = t[1] * 1000 + t[2] / 1000
  micros = t[1] * 1000000 + t[2]
end
math.randomseed(tonumber(ARGV[2]))

-- The crawl's numbers: read in one go, written back in one go at the end (finish), so that no step is counted half.
local S, changed = {}, {}
do
  local all = call('HGETALL', J .. ':m')
  for i = 1, #all, 2 do
    S[all[i]] = tonumber(all[i + 1]) or all[i + 1]
  end
end
if S.id == nil then
  return redis.error_reply('NOCRAWL there is no such crawl')
end

local function get(name) return S[name] or 0 end
local function set(name, value)
  S[name] = value
  changed[name] = true
end
local function bump(name, by) set(name, get(name) + by) end

-- The first write of a step is one that a full server refuses; what follows in the same script it takes. So a step is done whole or not at all.
local touched = false
local function touch()
  if touched then return end
  touched = true
  call('HINCRBY', J .. ':m', 'steps', 1)
end

-- Many fields or members of one key in as few calls as may be; `list` holds them as the command takes them.
local function callMany(command, key, list)
  for from = 1, #list, 1000 do call(command, key, unpack(list, from, math.min(from + 999, #list))) end
end

-- The exact text of a number; Redis cuts those of a reply to whole ones. Whole numbers are written in a tenth of the time.
local format = string.format
local function exact(n)
  if n == floor(n) and n < 1e15 and n > -1e15 then return format('%d', n) end
  return format('%.17g', n)
end

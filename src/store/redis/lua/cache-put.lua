-- cache-put: keeps a response. KEYS: {ns}. ARGV: its name, its size, moment ('': the server's clock), ms until it goes, most bytes, head that must be there
-- still ('': a new response), fields and values.
-- :cz responses by the moment at which they go, :cs their sizes, :cb their sum, :c:<name> the response.
local T = KEYS[1]
local call = redis.call
local name, size, ttl, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[4]), tonumber(ARGV[5])
local now = tonumber(ARGV[3])
if not now then
  local t = call('TIME')
  now = t[1] * 1000 + t[2] / 1000
end
local key = T .. ':c:' .. name
local function forget(member)
  local was = tonumber(call('HGET', T .. ':cs', member) or 0)
  call('HDEL', T .. ':cs', member)
  call('ZREM', T .. ':cz', member)
  call('UNLINK', T .. ':c:' .. member)
  return tonumber(call('DECRBY', T .. ':cb', was))
end
if ARGV[6] ~= '' then
  if call('HGET', key, 'head') ~= ARGV[6] then return 0 end
  size = size + tonumber(call('HSTRLEN', key, 'body'))
end
-- The first write is one that a full server refuses.
call('HSET', T .. ':cs', name .. '~', '')
call('HDEL', T .. ':cs', name .. '~')
if ARGV[6] == '' then forget(name) else call('DECRBY', T .. ':cb', tonumber(call('HGET', T .. ':cs', name) or 0)) end
call('HSET', key, 'at', string.format('%.17g', now), unpack(ARGV, 7))
call('PEXPIRE', key, ttl)
call('HSET', T .. ':cs', name, size)
call('ZADD', T .. ':cz', string.format('%.17g', now + ttl), name)
local sum = call('INCRBY', T .. ':cb', size)
for _, gone in ipairs(call('ZRANGEBYSCORE', T .. ':cz', '-inf', string.format('(%.17g', now), 'LIMIT', 0, 64)) do sum = forget(gone) end
for _, next in ipairs(sum > most and call('ZRANGE', T .. ':cz', 0, 499) or {}) do
  if sum <= most or next == name then break end
  sum = forget(next)
end
return 1

-- cache-put: KEYS: {ns}. ARGV: name of the response, its size, moment, ms until it goes, most bytes, 'new' or 'old' (only if it is there), fields and values.
-- :cz responses by the moment of their last change, :cs their sizes, :cb their sum, :c:<name> the response.
local T = KEYS[1]
local call = redis.call
local name, size, now, ttl, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local key = T .. ':c:' .. name
local function drop(member)
  local was = tonumber(call('HGET', T .. ':cs', member) or 0)
  call('HDEL', T .. ':cs', member)
  call('ZREM', T .. ':cz', member)
  call('UNLINK', T .. ':c:' .. member)
  call('DECRBY', T .. ':cb', was)
end
if ARGV[6] == 'old' then
  if call('EXISTS', key) == 0 then return 0 end
  size = size + tonumber(call('HSTRLEN', key, 'body'))
end
-- The first write is one that a full server refuses.
call('HSET', T .. ':cs', name .. '~', '')
call('HDEL', T .. ':cs', name .. '~')
if ARGV[6] == 'new' then drop(name) else call('DECRBY', T .. ':cb', tonumber(call('HGET', T .. ':cs', name) or 0)) end
call('HSET', key, unpack(ARGV, 7))
call('PEXPIRE', key, ttl)
call('HSET', T .. ':cs', name, size)
call('ZADD', T .. ':cz', string.format('%.17g', now), name)
local sum = call('INCRBY', T .. ':cb', size)
for _, old in ipairs(call('ZRANGEBYSCORE', T .. ':cz', '-inf', string.format('(%.17g', now - ttl), 'LIMIT', 0, 64)) do drop(old) end
local tries = 0
while sum > most and tries < 1000 do
  local oldest = call('ZRANGE', T .. ':cz', 0, 0)[1]
  if not oldest or oldest == name then break end
  drop(oldest)
  sum = tonumber(call('GET', T .. ':cb'))
  tries = tries + 1
end
return 1

-- cache-drop: takes responses away. KEYS: {ns}. ARGV: their names.
local T = KEYS[1]
local call = redis.call
for _, member in ipairs(ARGV) do
  local was = tonumber(call('HGET', T .. ':cs', member) or 0)
  call('HDEL', T .. ':cs', member)
  call('ZREM', T .. ':cz', member)
  call('UNLINK', T .. ':c:' .. member)
  call('DECRBY', T .. ':cb', was)
end
return #ARGV

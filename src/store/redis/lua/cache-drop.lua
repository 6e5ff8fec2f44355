-- cache-drop: takes responses away. KEYS: {ns}. ARGV: 'name' and a name, or 'past' and a moment ('': the server's clock), or 'most' and the bytes that may
-- stay; how many at most. Answers how many went, and the bytes that are left. Those that go next by their time go first.
local T = KEYS[1]
local call = redis.call
local what, which, most = ARGV[1], ARGV[2], tonumber(ARGV[3])
local sum = tonumber(call('GET', T .. ':cb') or 0)
local names
if what == 'name' then
  names = { which }
elseif what == 'past' then
  if which == '' then
    local t = call('TIME')
    which = string.format('%.17g', t[1] * 1000 + t[2] / 1000)
  end
  names = call('ZRANGEBYSCORE', T .. ':cz', '-inf', which, 'LIMIT', 0, most)
else
  names = call('ZRANGE', T .. ':cz', 0, most - 1)
end
local gone = 0
for _, member in ipairs(names) do
  if what == 'most' and tonumber(which) > 0 and sum <= tonumber(which) then break end
  local was = tonumber(call('HGET', T .. ':cs', member) or 0)
  call('HDEL', T .. ':cs', member)
  call('ZREM', T .. ':cz', member)
  call('UNLINK', T .. ':c:' .. member)
  sum = tonumber(call('DECRBY', T .. ':cb', was))
  gone = gone + 1
end
-- With the last response goes what is counted, whatever it says.
if call('EXISTS', T .. ':cz') == 0 then
  call('DEL', T .. ':cb', T .. ':cs')
  sum = 0
end
return { gone, string.format('%.0f', sum) }

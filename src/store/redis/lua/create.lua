-- create: a new crawl. KEYS: {ns}. ARGV: moment ('': the server's clock), info fields and values. Answers its id; ids count up.
local T = KEYS[1]
local call = redis.call
local t = call('TIME')
local now = ARGV[1] ~= '' and tonumber(ARGV[1]) or t[1] * 1000 + t[2] / 1000
local id = call('INCR', T .. ':ids')
local J = T .. ':' .. id
call('HSET', J .. ':m', 'id', id, 'ctl', 'run', 'limit', '')
call('HSET', J .. ':info', 'created', string.format('%.17g', now), unpack(ARGV, 2))
call('ZADD', T .. ':all', id, id)
call('ZADD', T .. ':jobs', id, id)
call('HSET', T .. ':alive', id, string.format('%.17g', now))
return id

-- create: a new crawl, unless an unfinished one writes to one of its files. ARGV: moment ('': the server's clock), '1': crawls that own its files are dropped for it
-- unless they are being written, how many files, files, then info fields and values.
-- Answers its id (ids count up) and those of dropped ones; or 0, which file, whose it is, and 1 when that one is being written.
local drops, n = ARGV[2] == '1', tonumber(ARGV[3])
local dropped, known = {}, {}
for i = 1, n do
  local owner = ownerOf(ARGV[3 + i])
  if owner then
    local held = call('EXISTS', T .. ':' .. owner .. ':own')
    if not drops or held == 1 then return { 0, i, owner, held } end
    if not known[owner] then dropped[#dropped + 1] = owner end
    known[owner] = true
  end
end
local t = call('TIME')
local now = ARGV[1] ~= '' and tonumber(ARGV[1]) or t[1] * 1000 + t[2] / 1000
local id = call('INCR', T .. ':ids')
local J = T .. ':' .. id
call('HSET', J .. ':m', 'id', id, 'ctl', 'run', 'limit', '')
call('HSET', J .. ':info', 'created', string.format('%.17g', now), unpack(ARGV, 4 + n))
call('ZADD', T .. ':all', id, id)
call('ZADD', T .. ':jobs', id, id)
call('HSET', T .. ':alive', id, string.format('%.17g', now))
for _, owner in ipairs(dropped) do
  local O = T .. ':' .. owner
  call('HSET', O .. ':info', 'dropped', id, 'finished', 'cancelled')
  -- Its writer may only have been silent for too long: it writes no more.
  call('HSET', O .. ':sink', 'by', 'crawl ' .. id)
end
for i = 1, n do claimFile(id, ARGV[3 + i]) end
return { id, unpack(dropped) }

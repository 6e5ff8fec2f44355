-- files: ARGV 1 what (owner, hold, release), 2 crawl, then files. `owner`: answers the first file of an unfinished crawl, and that crawl; `hold`: the crawl, whose
-- outputs are its caller's, has the files from now on and is not finished, or the same answer of another crawl's, or -1: it was dropped or is gone; `release`: it has none.
local what, id = ARGV[1], ARGV[2]
local J = T .. ':' .. id
if what == 'release' then
  for _, file in ipairs(call('SMEMBERS', J .. ':files')) do
    if call('HGET', T .. ':files', file) == id then call('HDEL', T .. ':files', file) end
  end
  call('UNLINK', J .. ':files')
  return { 0 }
end
if what == 'hold' then
  local created, dropped = unpack(call('HMGET', J .. ':info', 'created', 'dropped'))
  if not created or dropped then return { -1 } end
end
for i = 3, #ARGV do
  local owner = ownerOf(ARGV[i])
  if owner and owner ~= tonumber(id) then return { i - 2, owner, call('EXISTS', T .. ':' .. owner .. ':own') } end
end
if what == 'hold' then
  for i = 3, #ARGV do claimFile(id, ARGV[i]) end
  call('HDEL', J .. ':info', 'finished')
end
return { 0 }

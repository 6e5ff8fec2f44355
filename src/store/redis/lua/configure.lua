-- configure: the rules of a crawl, told by the first worker that opens it and kept for all others. ARGV 3 seed of its fingerprints, 4 how many fields, then
-- fields and values, then hosts and their rules. Answers the seed.
local n = tonumber(ARGV[4])
if not S.seed then
  touch()
  call('HSET', J .. ':m', 'seed', ARGV[3], unpack(ARGV, 5, 4 + n * 2))
  for i = 5 + n * 2, #ARGV, 2 do call('HSET', J .. ':hc', ARGV[i], ARGV[i + 1]) end
  return ARGV[3]
end
return S.seed

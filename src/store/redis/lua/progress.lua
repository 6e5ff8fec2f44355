-- progress: ARGV 3 how many have started, then token and ms since of each, then the tokens of those that have ended. Unknown tokens: nothing.
local n = tonumber(ARGV[3])
local held = {}
local function leaseOf(token)
  if held[token] == nil then held[token] = readLease(token) or false end
  return held[token]
end
do
  local tokens = {}
  for i = 4, 3 + n * 2, 2 do tokens[#tokens + 1] = ARGV[i] end
  for i = 4 + n * 2, #ARGV do tokens[#tokens + 1] = ARGV[i] end
  readLeasesAhead(tokens)
end
for i = 4, 3 + n * 2, 2 do
  local e = leaseOf(ARGV[i])
  if e then knowStart(e, now - tonumber(ARGV[i + 1])) end
end
for i = 4 + n * 2, #ARGV do
  local e = leaseOf(ARGV[i])
  if e then freeSlot(e) end
end
for _, e in pairs(held) do
  if e then
    touch()
    writeLease(e)
  end
end
flush()
return 1

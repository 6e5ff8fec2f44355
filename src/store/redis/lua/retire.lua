-- retire: takes the queues of hosts away, as their records name them. KEYS: {ns}, {ns}:<id>. ARGV: names of hosts.
local J = KEYS[2]
local call, sub, read = redis.call, string.sub, struct.unpack
for _, name in ipairs(ARGV) do
  local text = call('HGET', J .. ':h', name)
  if text then
    local flags, _, _, _, _, _, at = read('<BBHHdI', text)
    if flags % 64 >= 32 then at = at + struct.size('<dHHdddHBddIBddId') end
    for i = at, #text, 4 do
      local lane = sub(text, i, i + 3)
      if lane == '\0\0\0\0' then
        call('UNLINK', J .. ':q:r:' .. name)
      else
        local level, priority, back = read('>HBB', lane)
        call('UNLINK', J .. ':q:' .. (level - 1) .. ':' .. (99 - priority) .. (back == 0 and 'f' or '') .. ':' .. name)
      end
    end
    call('HDEL', J .. ':h', name)
  end
end
return 1

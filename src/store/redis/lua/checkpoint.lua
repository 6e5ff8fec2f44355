-- checkpoint: ARGV 3 what (own, keep, save, leave), 4 token of the owner, 5 its lease in ms, 6 cursor, 7 states of the sinks as JSON, 8 cursor of the owner's
-- last checkpoint, then keys of what may come again (repeats.ts). One owner at a time. Answers 0: not the owner, but so far the crawl is written, and by whom;
-- 2: the checkpoint before is another.
local O, K, AGAIN = J .. ':own', J .. ':sink', J .. ':again'
local what, token = ARGV[3], ARGV[4]
local owner = call('GET', O)
if what == 'own' then
  local heir = '|' .. ARGV[6]
  local isHeir = owner and #heir > 1 and string.sub(owner, -#heir) == heir
  if owner and owner ~= token and not isHeir then return { 0 } end
  call('SET', O, token, 'PX', ARGV[5])
  local at = call('HMGET', K, 'cursor', 'states', 'by')
  call('HSET', K, 'by', token)
  return { 1, at[1] or '0-0', at[2] or '{}', call('SMEMBERS', AGAIN), at[3] or '' }
end
local function another() return { 0, call('HGET', K, 'cursor') or '0-0', call('HGET', K, 'by') or '' } end
if not owner and what ~= 'leave' then
  -- Its time ran out while the server or it was away. As long as nobody else came, it is still the owner.
  if (call('HGET', K, 'by') or token) ~= token then return another() end
  call('SET', O, token, 'PX', ARGV[5])
  owner = token
end
if owner ~= token then return another() end
if what == 'leave' then
  call('DEL', O)
  return { 1 }
end
local cursor = call('HGET', K, 'cursor') or '0-0'
call('PEXPIRE', O, ARGV[5])
if what == 'save' then
  if cursor ~= ARGV[8] and cursor ~= ARGV[6] then return { 2, cursor } end
  callMany('SADD', AGAIN, { unpack(ARGV, 9) })
  call('HSET', K, 'cursor', ARGV[6], 'states', ARGV[7])
  local last = call('XRANGE', J .. ':out', ARGV[6], ARGV[6])[1]
  if last then
    local outputs, bytes = read('<dd', last[2][4])
    call('HSET', J .. ':m', 'oout', exact(outputs), 'ooutb', exact(bytes))
    local ms, n = string.match(ARGV[6], '^(%d+)-(%d+)$')
    call('XTRIM', J .. ':out', 'MINID', ms .. '-' .. string.format('%.0f', tonumber(n) + 1))
  end
end
return { 1, cursor }

-- Which unfinished crawl writes to a file: {ns}:files has crawls by file. One that came to its end, was dropped or is gone has no more claim to any.
local T, call = KEYS[1], redis.call

local function ownerOf(file)
  local id = call('HGET', T .. ':files', file)
  if not id then return nil end
  local created, finished, dropped = unpack(call('HMGET', T .. ':' .. id .. ':info', 'created', 'finished', 'dropped'))
  if not created or dropped then return nil end
  -- What was stopped so as to go on is not at its end.
  if finished and finished ~= 'interrupted' and finished ~= 'cancelled' then return nil end
  -- Done by workers and written by an export, there is nothing left of it, though nobody has said so.
  local over, queued, delayed, from, to = unpack(call('HMGET', T .. ':' .. id .. ':m', 'over', 'queued', 'delayed', 'oin', 'oout'))
  local empty = (queued or '0') == '0' and (delayed or '0') == '0' and (from or '0') == (to or '0')
  if over == '1' and empty and not finished and call('EXISTS', T .. ':' .. id .. ':own') == 0 then return nil end
  return tonumber(id)
end

local function claimFile(id, file)
  call('HSET', T .. ':files', file, id)
  call('SADD', T .. ':' .. id .. ':files', file)
end

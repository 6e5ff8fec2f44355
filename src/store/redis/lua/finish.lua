-- How every step ends: hosts are placed, numbers are written, and a crawl that is over is over once (I8).
local function isOver()
  if get('leased') > 0 or get('rleased') > 0 then return false end
  if S.ctl == 'drain' or S.ctl == 'now' then return true end
  if S.limit ~= '' and get('counted') >= S.limit then return true end
  return get('sc') == 1 and get('queued') == 0 and get('delayed') == 0
end

local function completeIfOver()
  if get('over') == 1 or not isOver() then return end
  set('over', 1)
  set('endedAt', exact(now))
  call('ZREM', T .. ':jobs', S.id)
  call('XADD', T .. ':ev', 'MAXLEN', '~', 1000, '*', 'crawl', S.id, 'event', 'completed')
  call('PUBLISH', T .. ':events', S.id .. ' completed')
end

local function freePlaces() return S.limit == '' and INF or S.limit - get('counted') - get('leased') end

local function flush()
  flushPushes()
  flushLeases()
  flushRaised()
  flushLevels()
  flushHosts()
  forgetSome()
  closeMap(V)
  closeMap(ONCE)
  flushOut()
  local out = {}
  for name in pairs(changed) do
    local value = S[name]
    out[#out + 1] = name
    out[#out + 1] = type(value) == 'number' and exact(value) or value
  end
  changed = {}
  if #out > 0 then call('HSET', J .. ':m', unpack(out)) end
end

-- control: ARGV 3 what (control, reopen, seeds, limit, items), 4 to. Stopping is not undone: what finishes may be paused and go on, but takes no links again.
local what, to = ARGV[3], ARGV[4]

-- Leases end as if returned; their tokens may still be handed back. The last one put in front is the first to go.
local function revokeAll()
  for _, token in ipairs(call('ZREVRANGE', X, 0, -1)) do
    local e = readLease(token)
    local p = placeOf(e)
    endLease(e)
    call('SADD', J .. ':rv', token)
    if p.robots then
      local o = originOf(originNameOf(p), p.host)
      o.pending = 0
      writeOrigin(o)
    else
      requeueFront(p)
    end
  end
end

touch()
if what == 'control' then
  if S.ctl ~= 'now' and (S.ctl ~= 'drain' or to == 'now') then
    if to == 'finish' then set('fin', 1) end
    set('ctl', to == 'run' and get('fin') == 1 and 'finish' or to)
    bump('cv', 1)
    if to == 'now' then revokeAll() end
    call('PUBLISH', J .. ':control', S.ctl)
  end
elseif what == 'reopen' then
  -- The same command again: what was stopped goes on.
  set('ctl', get('fin') == 1 and 'finish' or 'run')
  if get('over') == 1 and (get('queued') > 0 or get('delayed') > 0) then
    set('over', 0)
    call('ZADD', T .. ':jobs', S.id, S.id)
  end
  bump('cv', 1)
  call('PUBLISH', J .. ':control', S.ctl)
elseif what == 'seeds' then
  set('sc', (to == '1' or get('over') == 1) and 1 or 0)
elseif what == 'limit' then
  set('limit', tonumber(to) or '')
  local room = S.limit == '' or get('counted') < S.limit
  local work = get('queued') > 0 or get('delayed') > 0 or get('sc') ~= 1
  if get('over') == 1 and room and work and S.ctl ~= 'drain' and S.ctl ~= 'now' then
    set('over', 0)
    call('ZADD', T .. ':jobs', S.id, S.id)
  end
elseif what == 'items' then
  set('items', tonumber(to) or '')
else
  return redis.error_reply('BADARGS control')
end
flushLevels()
completeIfOver()
flush()
return S.ctl

-- renew: ARGV from 3 the tokens held. Answers those that are lost, and the control state. A lease past its deadline that nobody has reaped yet still counts.
local lost = {}
if now - get('alive') > 5000 and get('over') ~= 1 then
  touch()
  set('alive', exact(now))
  call('HSET', T .. ':alive', S.id, exact(now))
end
for i = 3, #ARGV do
  if call('HEXISTS', L, ARGV[i]) == 1 then
    touch()
    call('ZADD', X, exact(micros + S.lease * 1000), ARGV[i])
  else
    lost[#lost + 1] = ARGV[i]
  end
end
flush()
return { S.ctl, lost }

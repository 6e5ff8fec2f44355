-- views: ARGV from 3 names of hosts. Answers of each: name, queued, in flight, concurrency, delay, due in, settled, mean latency, paused; '' of those forgotten.
local out = {}
for i = 3, #ARGV do
  local h = findHost(ARGV[i])
  if h then
    local g = gateOf(h)
    local due = math.max(g.last + delayOf(h) * h.stretch, h.notBefore, g.notBefore, h.held) - now
    local queued = 0
    for _, lane in ipairs(h.lanes) do
      if lane ~= ROBOTS_LANE then queued = queued + call('LLEN', laneKey(h.name, lane)) end
    end
    out[#out + 1] = { h.name, queued, g.me.inFlight, h.auto and math.min(h.window, h.limit) or h.limit, exact(delayOf(h)), exact(math.max(0, due)),
      h.settled, exact(h.answers > 0 and h.latency / h.answers or 0), h.paused and 1 or 0 }
  end
end
return out

-- How many requests a host may have in flight, and for how long it is left alone: rules/pacing.ts once more, word for word. `h`: the host's record.
local noteLocal, slotsOf, takeAnswer
do
  function noteLocal(h)
    if h.epoch == 0 and h.window < h.limit then h.window = h.limit end
  end

  function slotsOf(h)
    if h.steps > 0 then return 1 end
    if h.auto then return math.max(1, math.min(h.window, h.limit)) end
    return h.limit
  end

  local function stepBack(h)
    h.epoch = h.epoch + 1
    h.goods = 0
    h.window = math.max(1, floor(h.window / 2))
  end

  local function takeLatency(h, ms, current)
    h.recent = h.recent == 0 and ms or h.recent + (ms - h.recent) / 8
    if h.baseline == 0 or h.recent < h.baseline then
      h.baseline = h.recent
    elseif current and h.recent > h.baseline * 2 and h.recent - h.baseline > 100 then
      stepBack(h)
      h.baseline = (h.baseline + h.recent) / 2
    else
      h.baseline = h.baseline + (h.recent - h.baseline) / 256
    end
  end

  function takeAnswer(h, good, ms, epoch, asked)
    local current = epoch == h.epoch
    if not good then
      if not current then return end
      stepBack(h)
      if asked then return end
      h.steps = math.min(h.steps + 1, 30)
      h.held = now + math.min(S.maxWait, 1000 * 2 ^ (h.steps - 1)) * (0.5 + math.random() / 2)
      return
    end
    if current then
      h.steps = 0
      h.held = 0
    end
    takeLatency(h, ms, current)
    h.goods = h.goods + 1
    if h.goods >= 20 then
      h.goods = 0
      if h.window < h.limit then h.window = h.window + 1 end
    end
  end
end

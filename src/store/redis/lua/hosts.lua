-- What is known of each host, and when its next request may start. A host's own record belongs to one crawl, its gate to all crawls of the store.
local W, HOSTS, GATES = J .. ':w', J .. ':h', T .. ':g'
-- A gate that nobody uses is remembered for so long: the next crawl may have a longer delay.
local KEPT = 300000
-- Scores of the waiting set are whole numbers of 1/4096 ms. Ties go by the order of arrival: steps far below what a clock tells.
local FINE, STEPS = 4096, 500

local HR, HD = {}, {}
-- Records that were read ahead, of hosts and of their gates: false of a host that has none.
local RAW, GATE_RAW = {}, {}
-- Texts of records and gates that were changed without being read into tables, which takes ten times as long. Whoever reads one writes it again.
local quickRecords, quickGates = {}, {}
local ties = 0

-- flags: 1 blocked, 2 auto, 4 tuned, 8 patched, 16 paused, 32 whole record (else one that has taught nothing yet)
local SHORT, SHORT_BYTES, WHOLE_BYTES = '<BBHHdI', 18, 88
local WHOLE = 'dHHdddHBddIBddId'
local LONG = SHORT .. WHOLE

-- All fields at once: a table that grows field by field is made six times over.
local function newHost(name, isLocal, site, leased, pos, turn, settled)
  local limit, fixed = S.conc, S.delay
  if S.hosts == 1 then
    local own = call('HGET', J .. ':hc', name)
    if own then
      local d, c = string.match(own, '^(.*),(.*)$')
      fixed, limit = tonumber(d) or fixed, tonumber(c) or limit
    end
  end
  local window = isLocal == 1 and limit or math.min(2, limit)
  return {
    name = name, lanes = {}, blocked = false, auto = fixed < 0, tuned = false, patched = false, paused = false, isLocal = isLocal,
    site = site, leased = leased, pos = pos, turn = turn, settled = settled, stretch = 1,
    limit = limit, usual = limit, fixed = math.max(0, fixed), crawlDelay = 0, patchedDelay = -1,
    window = window, window0 = window, goods = 0, baseline = 0, recent = 0, epoch = 0, steps = 0, held = 0,
    notBefore = 0, latency = 0, answers = 0, gate = false, dirty = false, moved = false,
  }
end

local function readHost(name, text)
  local flags = byte(text)
  local isLocal = flags % 128 >= 64 and 1 or 0
  local h, at
  if flags % 64 >= 32 then
    local _, site, leased, pos, turn, settled, stretch, limit, usual, fixed, crawlDelay, patchedDelay, window, goods, baseline, recent, epoch, steps, held,
      notBefore, answers, latency, after = read(LONG, text)
    h = {
      name = name, lanes = {}, blocked = flags % 2 == 1, auto = flags % 4 >= 2, tuned = flags % 8 >= 4, patched = flags % 16 >= 8, paused = flags % 32 >= 16,
      isLocal = isLocal, site = site, leased = leased, pos = pos, turn = turn, settled = settled, stretch = stretch,
      limit = limit, usual = usual, fixed = fixed, crawlDelay = crawlDelay, patchedDelay = patchedDelay,
      window = window, window0 = isLocal == 1 and limit or math.min(2, limit), goods = goods, baseline = baseline, recent = recent, epoch = epoch,
      steps = steps, held = held, notBefore = notBefore, latency = latency, answers = answers, gate = false, dirty = false, moved = false,
    }
    at = after
  else
    local _, site, leased, pos, turn, settled, after = read(SHORT, text)
    h = newHost(name, isLocal, site, leased, pos, turn, settled)
    h.blocked = flags % 2 == 1
    at = after
  end
  local n = 0
  for i = at, #text, 4 do
    n = n + 1
    h.lanes[n] = sub(text, i, i + 3)
  end
  return h
end

local function isWhole(h)
  return h.answers > 0 or h.tuned or h.patched or h.crawlDelay > 0 or h.notBefore > 0 or h.stretch ~= 1 or h.epoch > 0 or h.goods > 0 or h.held > 0
    or h.window ~= h.window0
end

local function writeHost(h)
  local flags = (h.blocked and 1 or 0) + (h.auto and 2 or 0) + (h.tuned and 4 or 0) + (h.patched and 8 or 0) + (h.paused and 16 or 0)
    + (h.isLocal == 1 and 64 or 0)
  local lanes = h.lanes[2] and table.concat(h.lanes) or h.lanes[1] or ''
  if not isWhole(h) then return pack(SHORT, flags, h.site, h.leased, h.pos, h.turn, h.settled) .. lanes end
  return pack(LONG, flags + 32, h.site, h.leased, h.pos, h.turn, h.settled, h.stretch, h.limit, h.usual, h.fixed, h.crawlDelay, h.patchedDelay, h.window,
    h.goods, h.baseline, h.recent, h.epoch, h.steps, h.held, h.notBefore, h.answers, h.latency) .. lanes
end

-- Reads values of fields ahead, in few calls for all of them.
local function readMany(key, names, into)
  for from = 1, #names, 1000 do
    local last = math.min(from + 999, #names)
    local found = call('HMGET', key, unpack(names, from, last))
    for i = from, last do into[names[i]] = found[i - from + 1] end
  end
end

local function readAhead(names)
  if #names < 2 then return end
  readMany(HOSTS, names, RAW)
  readMany(GATES, names, GATE_RAW)
end

local fresh = 0

-- Nil when it is not known and nothing is told of it.
local function findHost(name)
  local h = HR[name]
  if h then return h end
  local text = RAW[name]
  if text == nil then text = call('HGET', HOSTS, name) end
  if not text then return nil end
  h = readHost(name, text)
  HR[name] = h
  if quickRecords[name] then
    h.dirty, h.moved = true, true
    HD[#HD + 1] = h
  end
  return h
end

local function hostOf(name, isLocal, site)
  local h = findHost(name)
  if h then return h end
  h = newHost(name, isLocal or 0, site or 0, 0, 0, 0, 0)
  HR[name] = h
  fresh = fresh + 1
  return h
end

-- What is told of a host that changes nothing of when its next request may start: at the end of the step it is written.
local function note(h)
  if h.dirty then return end
  h.dirty = true
  HD[#HD + 1] = h
end

-- To be called after every other change: at the end of the step it is put where it belongs as well.
local function mark(h)
  h.moved = true
  note(h)
end

-- The gate: when the last request of any crawl started, and what each crawl that uses the host has under way and asks for.
local USE, USE_BYTES = '<IdHHHdd', 34
local ONE_USE = '<ddIdHHHdd'
local gateOf
do
  -- The rules of a crawl that has not asked for a host for so long hold no more, nor those of a crawl that nobody works on.
  local IDLE, DEAD = 60000, 60000

  function gateOf(h)
    local g = h.gate
    if g then return g end
    local text = GATE_RAW[h.name]
    if text == nil then text = call('HGET', GATES, h.name) end
    if text and #text == 16 + USE_BYTES then
      local last, notBefore, id, gap, slots, inFlight, awaiting, asked, waits = read(ONE_USE, text)
      if id == S.id then
        -- Nearly every host: no other crawl uses it.
        g = {
          last = last, notBefore = notBefore, others = {}, dirty = false,
          me = { id = id, gap = gap, slots = slots, inFlight = inFlight, awaiting = awaiting, asked = asked, waits = waits },
        }
        h.gate = g
        if quickGates[h.name] then
          g.dirty = true
          note(h)
        end
        return g
      end
    end
    g = { last = -INF, notBefore = -INF, others = {}, me = false, dirty = false }
    local me
    if text then
      local at
      g.last, g.notBefore, at = read('<dd', text)
      while at <= #text do
        local u = {}
        u.id, u.gap, u.slots, u.inFlight, u.awaiting, u.asked, u.waits, at = read(USE, text, at)
        if u.id == S.id then
          me = u
        else
          local alive = tonumber(call('HGET', T .. ':alive', u.id) or 0)
          local idle = u.inFlight == 0 and u.waits == 0 and now - u.asked > math.max(IDLE, u.gap * 2)
          if now - alive < DEAD and not idle then g.others[#g.others + 1] = u end
        end
      end
    end
    g.me = me or { id = S.id, gap = 0, slots = 0, inFlight = 0, awaiting = 0, asked = 0, waits = 0 }
    h.gate = g
    return g
  end
end

local function writeGate(g)
  local me = g.me
  if #g.others == 0 and me.asked > 0 then
    return pack(ONE_USE, g.last, g.notBefore, me.id, me.gap, math.min(65535, me.slots), me.inFlight, me.awaiting, me.asked, me.waits)
  end
  local text = { pack('<dd', g.last, g.notBefore) }
  local uses = { unpack(g.others) }
  if me.asked > 0 then uses[#uses + 1] = me end
  for _, u in ipairs(uses) do text[#text + 1] = pack(USE, u.id, u.gap, math.min(65535, u.slots), u.inFlight, u.awaiting, u.asked, u.waits) end
  return table.concat(text)
end

local function delayOf(h) return math.max(h.patchedDelay >= 0 and h.patchedDelay or h.fixed, h.crawlDelay) end
local ROBOTS_LANE = '\0\0\0\0'

local dueOf
do
  -- A host that waits for another crawl looks again after so long.
  local RECHECK = 50
  -- A crawl whose turn it is but does not come holds up the others for so long.
  local GRACE = 100

  -- The moment at which its next request may start, and what it waits for until then. INF: until a lease of this crawl changes.
  function dueOf(h)
    if h.paused then return INF, 'paused' end
    local g = gateOf(h)
    local me, slots = g.me, slotsOf(h)
    if me.inFlight >= slots then return INF, 'host-slots' end
    local delay = delayOf(h)
    if delay > 0 and me.awaiting > 0 then return INF, 'delay' end
    if h.blocked and h.lanes[1] ~= ROBOTS_LANE then return INF, 'robots' end
    local gap = delay * h.stretch
    local at = math.max(g.last + gap, h.notBefore, g.notBefore, h.held, h.turn)
    if #g.others == 0 then return at, 'delay' end
    local inFlight, awaiting, first = me.inFlight, me.awaiting, nil
    for _, u in ipairs(g.others) do
      inFlight = inFlight + u.inFlight
      awaiting = awaiting + u.awaiting
      slots = math.min(slots, u.slots)
      gap = math.max(gap, u.gap)
      if u.waits > 0 and (me.waits == 0 or u.waits < me.waits) then first = u end
    end
    if inFlight >= slots then return math.max(at, now + RECHECK), 'host-slots' end
    if gap > 0 and awaiting > 0 then return math.max(at, now + RECHECK), 'delay' end
    at = math.max(at, g.last + gap)
    -- Another crawl has waited for longer: it has its turn, if it comes for it.
    if first and at <= now and now < math.max(g.last + gap, first.waits) + GRACE then return now + GRACE / 4, 'host-slots' end
    return at, 'delay'
  end
end

-- Notes what this crawl asks of the host, for the others to keep to.
local function noteAsk(h, granted)
  local g = gateOf(h)
  local me = g.me
  me.gap, me.slots, me.asked = delayOf(h) * h.stretch, slotsOf(h), now
  if granted then
    me.waits = 0
  elseif #g.others > 0 and me.waits == 0 then
    me.waits = now
  end
  g.dirty = true
end

local function started(h, at)
  local g = gateOf(h)
  g.dirty = true
  if at < g.last then return end
  g.last = at
  h.stretch = S.jitter > 0 and 1 + S.jitter * math.random() or 1
  g.me.gap = delayOf(h) * h.stretch
end

-- Nothing of any crawl starts there before.
local function holdAll(h, till)
  local g = gateOf(h)
  if till > g.notBefore then
    g.notBefore = till
    g.dirty = true
  end
end

-- `text`: crawlDelay,notBefore,local,concurrency,paused,patchedDelay,patchedConcurrency; empty: says nothing; n: lifts.
local function tune(h, text)
  local f = {}
  for field in string.gmatch(text .. ',', '([^,]*),') do f[#f + 1] = field end
  local n = function(i) return tonumber(f[i]) end
  if n(4) then
    h.limit = math.max(1, n(4))
    h.usual = h.limit
    h.tuned = true
  end
  if n(1) then h.crawlDelay = math.min(n(1), S.maxWait) end
  if n(2) then
    h.notBefore = math.max(h.notBefore, now + math.min(n(2), S.maxWait))
    if n(2) > 0 then holdAll(h, h.notBefore) end
  end
  if f[3] == '1' then noteLocal(h) end
  if f[5] ~= '' or f[6] ~= '' or f[7] ~= '' then
    h.patched = true
    if f[5] ~= '' then h.paused = f[5] == '1' end
    if f[6] ~= '' then h.patchedDelay = n(6) or -1 end
    if f[7] ~= '' then
      h.limit = math.max(1, n(7) or h.usual)
      if h.isLocal == 1 then noteLocal(h) end
    end
  end
  mark(h)
end

-- Places of the balance (I2): entries of queues, their leases, and how a place ends. An entry, as the client packs it (pack.ts):
--   fingerprint 8 | flags 1 | [attempts 1, crashes 1 if 128] | [length of the referrer 2 if 16 or 32] | [length of the rest 4 if 64] | referrer | rest | path
-- flags: hop 0…7 (seed link redirect sitemap robots), 8 https, 16 referrer on the same scheme and host, 32 referrer in full, 64 rest, 128 history
-- rest:  kind 1 | [depth 2 if 1: a place of its own] | [origin if 4: length 2, text] | [owed outputs if 2: length 4, packets] | what only clients read
local ROBOTS_HOP = 4

-- The entry of a place is kept as it is until something of it changes.
local function readPlace(entry, host, priority)
  local flags = byte(entry, 9)
  local hop = flags % 8
  if flags < 64 and hop ~= ROBOTS_HOP then
    -- Nearly every place.
    return { fp = sub(entry, 1, 8), flags = flags, attempt = 0, crashes = 0, host = host, priority = priority, entry = entry, body = false, hop = hop, robots = false }
  end
  local p = { fp = sub(entry, 1, 8), flags = flags % 128, attempt = 0, crashes = 0, host = host, priority = priority, entry = entry, hop = hop }
  local from = 10
  if flags >= 128 then
    p.attempt, p.crashes = byte(entry, 10, 11)
    from = 12
  end
  p.body = sub(entry, from)
  p.robots = hop == ROBOTS_HOP
  local referrer = 0
  local at = 1
  if flags % 64 >= 16 then
    referrer = read('<H', p.body)
    at = 3
  end
  p.at = at
  if flags % 128 >= 64 then
    p.rest = at + 4 + referrer
    p.kind = byte(p.body, p.rest)
    local next = p.rest + 1
    if p.kind % 2 == 1 then
      p.detached = true
      p.depth = read('<H', p.body, next)
      next = next + 2
    end
    if p.kind % 8 >= 4 then
      local length = read('<H', p.body, next)
      p.origin = sub(p.body, next + 2, next + 1 + length)
      next = next + 2 + length
    end
    if p.kind % 4 >= 2 then
      p.owedAt = next
      p.owedLength = read('<I4', p.body, next)
      p.owes = true
    end
  end
  if p.robots then p.origin = sub(p.body, at + (p.rest and 4 or 0), at + (p.rest and 4 or 0) + referrer - 1) end
  return p
end

local function originNameOf(p) return p.origin or (p.flags % 16 >= 8 and 'https://' or 'http://') .. p.host end

-- To be called before anything of the place is changed.
local function change(p)
  if p.entry and not p.body then p.body = sub(p.entry, 10) end
  p.entry = nil
end

local function writePlace(p)
  if p.entry then return p.entry end
  if p.attempt == 0 and p.crashes == 0 then return p.fp .. char(p.flags) .. p.body end
  return p.fp .. char(p.flags + 128, math.min(255, p.attempt), math.min(255, p.crashes)) .. p.body
end

-- The packets that the place owes, '' when none.
local function owedOf(p)
  if not p.owes then return '' end
  return sub(p.body, p.owedAt + 4, p.owedAt + 3 + p.owedLength)
end

-- It owes nothing any more.
local function forgive(p)
  if not p.owes then return end
  change(p)
  local cut = 4 + p.owedLength
  local rest = read('<I4', p.body, p.at) - cut
  p.body = sub(p.body, 1, p.at - 1) .. pack('<I4', rest) .. sub(p.body, p.at + 4, p.rest - 1) .. char(p.kind - 2)
    .. sub(p.body, p.rest + 1, p.owedAt - 1) .. sub(p.body, p.owedAt + cut)
  p.kind = p.kind - 2
  p.owes = false
end

local function levelOfPlace(p)
  if not LEVELS then return 0 end
  if p.detached then return p.depth end
  return depthOf(seen(p.fp))
end

-- Where levels hold, a queued place may be lowered, and its old entry is skipped: what it carries beyond its request is kept beside it.
local CARRIED = J .. ':cy'
local function carry(p)
  if not LEVELS or p.detached or p.robots then return end
  if p.attempt > 0 or p.crashes > 0 or p.owes then call('HSET', CARRIED, p.fp, pack('BB', p.attempt, p.crashes) .. owedOf(p)) end
end

-- Back to the front of its host's queue; counted nowhere when this is called.
local function requeueFront(p)
  local h = hostOf(p.host, 0, 0)
  if p.robots then
    pushRobots(h, writePlace(p))
    return
  end
  pushFront(h, levelOfPlace(p), p.priority, writePlace(p))
  bump('queued', 1)
  if LEVELS and not p.detached then
    local value = seen(p.fp)
    setSeen(p.fp, valueOf(stateOf(value) == RELINK_HELD and RELINK_QUEUED or QUEUED, depthOf(value)))
    carry(p)
  end
end

local function isRelink(p) return LEVELS and not p.detached and not p.robots and stateOf(seen(p.fp)) == RELINK_HELD end

-- Leases: priority 1, bits 1, epoch 4, depth 2, host 2+n, entry. bits: 1 the start is known, or known not to have happened; 2 the slot was given back
local L, X = J .. ':L', J .. ':x'
local LEASE = '<bBIHH'
local LEASE_RAW = {}

local function hostNameOf(text)
  local low, high = byte(text, 9, 10)
  return sub(text, 11, 10 + low + high * 256)
end

-- Reads leases and their hosts ahead, and the gates of these: of all, or where a lease has not ended yet.
local function readLeasesAhead(tokens, needsRecord, needsGate)
  if #tokens < 1 then return end
  readMany(L, tokens, LEASE_RAW)
  local names, gated, met = {}, {}, {}
  for _, token in ipairs(tokens) do
    local text = LEASE_RAW[token]
    if text then
      local name = hostNameOf(text)
      if not met[name] then
        met[name] = true
        names[#names + 1] = name
        if needsGate or byte(text, 2) < 3 then gated[#gated + 1] = name end
      end
    end
  end
  if needsRecord then readMany(HOSTS, names, RAW) end
  readMany(GATES, gated, GATE_RAW)
end

local function readLease(token)
  local text = LEASE_RAW[token]
  if text == nil then text = call('HGET', L, token) end
  if not text then return nil end
  local priority, bits, epoch, depth, length, at = read(LEASE, text)
  local name = sub(text, at, at + length - 1)
  return { token = token, bits = bits, epoch = epoch, depth = depth, priority = priority, text = text, at = at + length, name = name, host = hostOf(name, 0, 0), place = false }
end

local function placeOf(e)
  local p = e.place
  if p then return p end
  p = readPlace(sub(e.text, e.at), e.name, e.priority)
  e.place = p
  return p
end

-- Leases that are written and that end in this step, for few calls at its end.
local written, ended, deadlines = {}, {}, {}
local function writeLease(token, epoch, p, depth, entry)
  local n = #written
  written[n + 1] = token
  written[n + 2] = pack(LEASE, p.priority, 0, epoch, depth, #p.host) .. p.host .. entry
end

local function flushLeases()
  callMany('HDEL', L, ended)
  callMany('ZREM', X, ended)
  callMany('HSET', L, written)
  callMany('ZADD', X, deadlines)
  written, ended, deadlines = {}, {}, {}
end

-- A gate has changed: whether that bears on when the host's next request may start.
local function noteGate(h, g, bears)
  g.dirty = true
  if bears or #g.others > 0 then mark(h) else note(h) end
end

-- The first word on when its request went out counts; nil: never.
local function knowStart(e, at)
  if e.bits % 2 == 1 then return end
  e.bits = e.bits + 1
  local h = e.host
  local g = gateOf(h)
  g.me.awaiting = math.max(0, g.me.awaiting - 1)
  if at then started(h, at) end
  noteGate(h, g, delayOf(h) > 0)
end

local function freeSlot(e)
  if e.bits >= 2 then return end
  e.bits = e.bits + 2
  local h = e.host
  local g = gateOf(h)
  local full = g.me.inFlight >= slotsOf(h)
  g.me.inFlight = math.max(0, g.me.inFlight - 1)
  noteGate(h, g, full)
end

-- Takes a lease off the books; its place is counted nowhere after this.
local function endLease(e)
  ended[#ended + 1] = e.token
  e.host.leased = math.max(0, e.host.leased - 1)
  bump(placeOf(e).robots and 'rleased' or 'leased', -1)
  freeSlot(e)
  knowStart(e, nil)
  note(e.host)
end

-- Pages that the item limit cut in two: they have their record, and are fetched again for the rest. Among the values of the user's code, as RUN_CUT has it.
local function cutKey(p) return 'run:cut:' .. string.gsub(p.fp, '.', function(c) return format('%02x', byte(c)) end) end
-- How many of its items are written; nil: it is no such page.
local function cutOf(p)
  if get('cuts') == 0 or p.robots then return nil end
  return tonumber(call('HGET', J .. ':val', cutKey(p)) or nil)
end
local function noteCut(p, written)
  if call('HSET', J .. ':val', cutKey(p), written) == 1 then bump('cuts', 1) end
end
local function forgetCut(p)
  if get('cuts') > 0 and call('HDEL', J .. ':val', cutKey(p)) == 1 then bump('cuts', -1) end
end

local function leaveDropped(p)
  forgetCut(p)
  bump('dropped', 1)
  dropLevel(levelOfPlace(p))
  if LEVELS and not p.detached then setSeen(p.fp, valueOf(DROPPED, depthOf(seen(p.fp)))) end
end

-- Origins. state: kind (r rules, a allow-all, u unavailable, - not known), pending, version, expiry, host, and of unavailable ones the code and why
local RO = J .. ':ro'
local function originOf(origin, host)
  local text = call('HGET', RO, origin)
  if not text then return { origin = origin, kind = '-', pending = 0, version = 0, expires = 0, host = host, more = '' } end
  local o = { origin = origin }
  local length, at
  o.kind, o.pending, o.version, o.expires, length, at = read('<c1BId' .. 'H', text)
  o.host = sub(text, at, at + length - 1)
  o.more = sub(text, at + length)
  return o
end

local function writeOrigin(o)
  call('HSET', RO, o.origin, pack('<c1BIdH', o.kind, o.pending, o.version, o.expires, #o.host) .. o.host .. o.more)
end

-- A final answer; the host that waits for it goes on. `text` of rules lies apart, for leases carry only its version.
local function settleRobots(p, kind, ttl, more, text)
  local o = originOf(originNameOf(p), p.host)
  local same = kind == 'r' and o.kind == 'r' and call('HGET', J .. ':rx', o.origin) == text
  if not same then
    bump('rov', 1)
    o.version = get('rov')
    if kind == 'r' then call('HSET', J .. ':rx', o.origin, text) else call('HDEL', J .. ':rx', o.origin) end
  end
  o.kind, o.more, o.pending, o.expires = kind, more, 0, now + ttl
  writeOrigin(o)
  local h = hostOf(o.host, 0, 0)
  h.blocked = false
  mark(h)
end

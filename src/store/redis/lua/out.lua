-- The outbox: what the settled pages leave for the sinks, in the order of the steps, in packets (pack.ts). Each URL is skipped, each link found, once a crawl.
--   'o' head 4+n | skipped 4: fingerprint 8, flags 1, reason 1+n, json 4+n | found 4: fingerprint 8, json 4+n | items 4 (2^32-1: none given): json 4+n
--   'c' crashes 1 priority 1 depth 2 host 2+n entry: a request that crashed its workers; whoever drains makes its record
-- flags of a skip: 1 it speaks of one link, not of its URL; 2 a repetition, listed each time and counted elsewhere
local ONCE = openMap('o')
local outgoing, outgoingBytes = {}, 0

local raised = {}
local function raise(name, by) raised[name] = (raised[name] or 0) + by end
local function flushRaised()
  for name, by in pairs(raised) do
    if by == floor(by) then call('HINCRBY', J .. ':t', name, by) else call('HINCRBYFLOAT', J .. ':t', name, exact(by)) end
  end
  raised = {}
end

local outgoingCount = 0
local function sendSized(sized)
  outgoingCount = outgoingCount + 1
  outgoing[outgoingCount] = sized
  outgoingBytes = outgoingBytes + #sized - 4
end
local function send(packet) sendSized(pack('<I4', #packet) .. packet) end

local passPacket, itemsOf, passRest
do
  local NONE = 4294967295
  -- Whether this is the first time; bit 1 skipped, 2 found.
  local function firstTime(fp, bit)
    local key = bucketOf(ONCE, fp)
    local was = tonumber(call('HGET', key, fp) or 0)
    if floor(was / bit) % 2 == 1 then return false end
    if was == 0 then ONCE.n = ONCE.n + 1 end
    call('HSET', key, fp, was + bit)
    return true
  end

  local function passSkips(packet, at, out)
    local n
    n, at = read('<I4', packet, at)
    local kept = {}
    for _ = 1, n do
      local from = at
      local fp = sub(packet, at, at + 7)
      local flags, length = byte(packet, at + 8, at + 9)
      local reason = sub(packet, at + 10, at + 9 + length)
      local size
      size, at = read('<I4', packet, at + 10 + length)
      at = at + size
      if flags >= 2 then
        kept[#kept + 1] = sub(packet, from, at - 1)
      elseif not (flags == 1 and seen(fp)) and firstTime(fp, 1) then
        kept[#kept + 1] = sub(packet, from, at - 1)
        raise('skip:' .. reason, 1)
      end
    end
    out[#out + 1] = pack('<I4', #kept) .. table.concat(kept)
    return at
  end

  local function passFound(packet, at, out)
    local n
    n, at = read('<I4', packet, at)
    local kept = {}
    for _ = 1, n do
      local size, next = read('<I4', packet, at + 8)
      if firstTime(sub(packet, at, at + 7), 2) then kept[#kept + 1] = sub(packet, at, next + size - 1) end
      at = next + size
    end
    out[#out + 1] = pack('<I4', #kept) .. table.concat(kept)
    return at
  end

  -- `told`: so many are written already; `keep`: so many of the others are to be, nil: all.
  local function passItems(packet, at, out, told, keep)
    local n, from = read('<I4', packet, at)
    if n == NONE then
      out[#out + 1] = pack('<I4', NONE)
      return 0
    end
    local passed = math.min(n, told or 0)
    local kept = math.min(n - passed, keep or n)
    local function after(count, place)
      for _ = 1, count do
        local size, next = read('<I4', packet, place)
        place = next + size
      end
      return place
    end
    from = after(passed, from)
    if kept > 0 then raise('items', kept) end
    out[#out + 1] = pack('<I4', kept) .. sub(packet, from, after(kept, from) - 1)
    return kept
  end

  -- Where the items of a packet begin.
  local function itemsAt(packet, at)
    local n, next = read('<I4', packet, at + 5 + read('<I4', packet, at + 1))
    for _ = 1, n do
      local size
      size, next = read('<I4', packet, next + 10 + byte(packet, next + 9))
      next = next + size
    end
    n, next = read('<I4', packet, next)
    for _ = 1, n do
      local size
      size, next = read('<I4', packet, next + 8)
      next = next + size
    end
    return next
  end

  -- Of several packets the last is the page's own.
  local function ownAt(packets)
    local at, own = 1, nil
    while at <= #packets do
      local size, from = read('<I4', packets, at)
      at, own = from + size, from
    end
    return own
  end

  -- How many items a page has.
  function itemsOf(packets)
    local own = ownAt(packets)
    local n = own and read('<I4', packets, itemsAt(packets, own)) or 0
    return n == NONE and 0 or n
  end

  -- Of a page that has been told of the rest of its items.
  function passRest(packets, told, keep)
    local own = ownAt(packets)
    if not own then return end
    local head = '\0{"page":null,"listed":false,"edges":[]}'
    local out = { 'o', pack('<I4', #head), head, pack('<I4I4', 0, 0) }
    if passItems(packets, itemsAt(packets, own), out, told, keep) > 0 then send(table.concat(out)) end
  end

  -- Sends a packet with what has not passed before.
  function passPacket(packet, keep)
    local size = read('<I4', packet, 2)
    local at = 6 + size
    local out = { sub(packet, 1, at - 1) }
    at = passSkips(packet, at, out)
    at = passFound(packet, at, out)
    passItems(packet, at, out, nil, keep)
    send(table.concat(out))
  end
end

-- How many more items may be written.
local function itemRoom()
  local limit = tonumber(S.items)
  if not limit then return INF end
  return math.max(0, limit - tonumber(call('HGET', J .. ':t', 'items') or 0))
end

-- Several packets, each behind its length. `keep`: so many items of the last one, the only one that has any.
local NOTHING_ELSE = string.rep('\0', 8) .. string.rep('\255', 4)
local function passPackets(packets, keep)
  if #packets > 21 then
    -- Often there is one, with a record alone.
    local size, _, head = read('<I4c1I4', packets)
    if #packets == size + 4 and size == head + 17 and sub(packets, -12) == NOTHING_ELSE then
      sendSized(packets)
      return
    end
  end
  local at = 1
  while at <= #packets do
    local size, from = read('<I4', packets, at)
    passPacket(sub(packets, from, from + size - 1), keep)
    at = from + size
  end
end

-- The record of a request whose lease was lost too often is made by whoever drains: it takes words that a script has not got.
local function sendCrash(p, depth)
  passPackets(owedOf(p))
  forgive(p)
  change(p)
  send('c' .. pack('<BbHH', p.crashes, p.priority, depth, #p.host) .. p.host .. p.fp .. char(p.flags) .. p.body)
end

-- One entry of the stream a step. a: all packets and bytes so far, by which the reader's checkpoint tells how much is left.
local function flushOut()
  if #outgoing == 0 then return end
  bump('oin', outgoingCount)
  bump('oinb', outgoingBytes)
  call('XADD', J .. ':out', '*', 'p', table.concat(outgoing), 'a', pack('<dd', get('oin'), get('oinb')))
end

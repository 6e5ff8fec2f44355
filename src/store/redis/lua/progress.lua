-- progress: ARGV 3 how many have started, then token and ms since of each, then the tokens of those that have ended. Unknown tokens: nothing.
local n = tonumber(ARGV[3])
local tokens = {}
for i = 4, 3 + n * 2, 2 do tokens[#tokens + 1] = ARGV[i] end
for i = 4 + n * 2, #ARGV do tokens[#tokens + 1] = ARGV[i] end
readLeasesAhead(tokens, false, true)

-- Where no rest is owed, no other crawl asks and a slot is free anyway, the gate alone changes. False: it must be looked at.
local function tellGate(name, startedAt, ended)
  local gate = GATE_RAW[name]
  if HR[name] or not gate or #gate ~= 16 + USE_BYTES then return false end
  local last, notBefore, id, gap, slots, inFlight, awaiting, asked, waits = read(ONE_USE, gate)
  if id ~= S.id or gap > 0 or inFlight >= slots then return false end
  if startedAt then
    awaiting = math.max(0, awaiting - 1)
    last = math.max(last, startedAt)
  end
  if ended then inFlight = math.max(0, inFlight - 1) end
  gate = pack(ONE_USE, last, notBefore, id, gap, slots, inFlight, awaiting, asked, waits)
  GATE_RAW[name] = gate
  quickGates[name] = gate
  return true
end

local function withBits(text, bits) return sub(text, 1, 1) .. char(bits) .. sub(text, 3) end

local held, changedLeases = {}, {}
local function tell(token, startedAt, ended)
  local text = LEASE_RAW[token]
  if not text then return end
  local e = held[token]
  if not e then
    local bits = byte(text, 2)
    if startedAt and bits % 2 == 1 or ended and bits >= 2 then return end
    if tellGate(hostNameOf(text), startedAt, ended) then
      LEASE_RAW[token] = withBits(text, bits + (startedAt and 1 or 2))
      changedLeases[token] = true
      return
    end
    e = readLease(token)
    held[token] = e
    changedLeases[token] = true
  end
  if startedAt then knowStart(e, startedAt) else freeSlot(e) end
  LEASE_RAW[token] = withBits(text, e.bits)
end
for i = 4, 3 + n * 2, 2 do tell(ARGV[i], now - tonumber(ARGV[i + 1]), false) end
for i = 4 + n * 2, #ARGV do tell(ARGV[i], nil, true) end
for token in pairs(changedLeases) do
  touch()
  written[#written + 1] = token
  written[#written + 1] = LEASE_RAW[token]
end
flush()
return 1

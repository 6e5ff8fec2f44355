-- Values of the user's code: JSON text by key, changed as rules/values.ts has it.
local changeValues
do
  local VALUES = J .. ':val'

  -- Strings go by UTF-16 code units: characters beyond the first plane (four bytes) come before U+E000 and after U+D7FF.
  local function lessText(a, b)
    for i = 1, math.min(#a, #b) do
      local x, y = byte(a, i), byte(b, i)
      if x ~= y then
        if x >= 0xF0 then x = 0xED + x / 1024 end
        if y >= 0xF0 then y = 0xED + y / 1024 end
        return x < y
      end
    end
    return #a < #b
  end

  local function parsed(json)
    local ok, list = pcall(cjson.decode, '[' .. json .. ']')
    if ok then return list[1] end
    return json
  end

  -- Negative: a before b. Numbers by size, strings by code units, a number before a string.
  local function compareValues(a, b)
    local x, y = parsed(a), parsed(b)
    if type(x) == 'number' and type(y) == 'number' then return x < y and -1 or x > y and 1 or 0 end
    if type(x) == 'string' and type(y) == 'string' then return lessText(x, y) and -1 or x == y and 0 or 1 end
    return (type(x) == 'number' and 0 or 1) - (type(y) == 'number' and 0 or 1)
  end

  -- `text`: op 1 (s set, > max, < min) | key 4+n | value 4+n (2^32-1: none), one behind the other.
  function changeValues(text)
    local at = 1
    while at <= #text do
      local op, length, key, value
      op, length, at = read('<c1I4', text, at)
      key = sub(text, at, at + length - 1)
      length, at = read('<I4', text, at + length)
      if length ~= 4294967295 then
        value = sub(text, at, at + length - 1)
        at = at + length
      end
      local before = call('HGET', VALUES, key)
      local after = value
      if op ~= 's' and before then
        after = before
        if value then
          local order = compareValues(value, before)
          if (op == '>' and order > 0) or (op == '<' and order < 0) then after = value end
        end
      end
      if after then call('HSET', VALUES, key, after) elseif before then call('HDEL', VALUES, key) end
    end
  end
end

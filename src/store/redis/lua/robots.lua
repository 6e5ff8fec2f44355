-- robots: ARGV from 3 origins. Answers of each that is known and has not expired: kind, version, its reason as JSON, its text; else an empty list.
local out = {}
for i = 3, #ARGV do
  local o = originOf(ARGV[i], '')
  if o.kind == '-' or o.expires <= now then
    out[#out + 1] = {}
  else
    out[#out + 1] = { o.kind, o.version, o.more, call('HGET', J .. ':rx', o.origin) or '' }
  end
end
return out

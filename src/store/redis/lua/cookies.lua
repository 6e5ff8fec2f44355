-- Cookies of the crawl's sites. A jar is a list, oldest first, each: key 2+n (name, domain and path as one text) | domain 2+n | expiry 8 (-1: none) | json 4+n.
local keepCookies, siteOf
do
  local MOST_OF_DOMAIN, MOST_OF_JAR = 50, 300

  local function readJar(text, into)
    local at = 1
    while at <= #text do
      local c, n = { from = at }, nil
      n, at = read('<H', text, at)
      c.key = sub(text, at, at + n - 1)
      at = at + n
      n, at = read('<H', text, at)
      c.domain = sub(text, at, at + n - 1)
      at = at + n
      c.expires, n, at = read('<dI4', text, at)
      at = at + n
      c.text = sub(text, c.from, at - 1)
      into(c)
    end
  end

  -- rules/cookies.ts mergeCookies: what is set again keeps its age, the expired go, then the oldest beyond the bounds.
  function keepCookies(site, set_)
    local order, kept = {}, {}
    local function take(c)
      if c.expires >= 0 and c.expires <= now then
        kept[c.key] = nil
        return
      end
      if not kept[c.key] then
        order[#order + 1] = c.key
        c.place = #order
      else
        c.place = kept[c.key].place
      end
      kept[c.key] = c
    end
    readJar(call('HGET', J .. ':ck', site) or '', take)
    readJar(set_, take)
    local counts, newest, total = {}, {}, 0
    for i = #order, 1, -1 do
      local c = kept[order[i]]
      if c and c.place == i then
        counts[c.domain] = (counts[c.domain] or 0) + 1
        if counts[c.domain] <= MOST_OF_DOMAIN and total < MOST_OF_JAR then
          total = total + 1
          table.insert(newest, 1, c.text)
        end
      end
    end
    if total == 0 then
      call('HDEL', J .. ':ck', site)
    else
      call('HSET', J .. ':ck', site, table.concat(newest))
      set('jars', 1)
    end
  end

  -- What shares cookies with the host: the end of its name, as long as the client said.
  function siteOf(h)
    local name = h.name
    if sub(name, -1) ~= ']' then name = string.gsub(name, ':%d+$', '') end
    return h.site > 0 and sub(name, -h.site) or name
  end
end

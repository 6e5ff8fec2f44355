/** TLS and proxies, against servers on loopback. The key is for these tests only. */
import assert from "node:assert/strict";
import { createServer as createHttpServer } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, connect, type Server, type Socket } from "node:net";
import { test } from "node:test";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import type { Lookup } from "./dns.ts";
import { page, startRawServer } from "./raw-server.ts";
import { bodyOf, exchangeFor, fetchOnce, openFetcher } from "./trial.ts";

/** Self-signed, for tls.example and *.tls.example, 2020 to 2120. */
const CERT = `-----BEGIN CERTIFICATE-----
MIIBdzCCARygAwIBAgIBATAKBggqhkjOPQQDAjAWMRQwEgYDVQQDDAt0bHMuZXhh
bXBsZTAgFw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEwMTAwMDAwMFowFjEUMBIGA1UE
AwwLdGxzLmV4YW1wbGUwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASf0piYeKD/
SgyWtyl72Gozj0WBOsQr/gzNQ1C8HJE4lMAMgHZRzI+51CU0an5XM99AtIcQMQYw
uKutKW4+KkPYo1kwVzAlBgNVHREEHjAcggt0bHMuZXhhbXBsZYINKi50bHMuZXhh
bXBsZTAPBgNVHRMBAf8EBTADAQH/MB0GA1UdDgQWBBQqJ+ICWVm1OVfBvVTz/hFF
reAIHTAKBggqhkjOPQQDAgNJADBGAiEAj4ix7D4Xj+Wg8/7sTPKp/vhZ7IlAHkDY
U0DwUJsEAvQCIQCIQMl3vkNLpou6NoqyzuXoQ/3EXt9H4EiOmTurI7VAjQ==
-----END CERTIFICATE-----`;
const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg2n4gJw3FZ0TJrFz3
renSRLBTq1Z19n8A+PDS7SGY2imhRANCAASf0piYeKD/SgyWtyl72Gozj0WBOsQr
/gzNQ1C8HJE4lMAMgHZRzI+51CU0an5XM99AtIcQMQYwuKutKW4+KkPY
-----END PRIVATE KEY-----`;

const toLoopback: Lookup = (_, callback) => callback(null, [{ address: "127.0.0.1", family: 4 }]);

async function listen(server: Server): Promise<{ port: number } & AsyncDisposable> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    // listen() on a port gives an AddressInfo
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const secureServer = () =>
  listen(createHttpsServer({ cert: CERT, key: KEY }, (request, response) => response.end(`secure ${request.headers.host}${request.url}`)));

/** A proxy that notes what it was asked. */
async function startProxy(credentials: string | null = null) {
  const asked: string[] = [];
  const denied = (given: string | undefined) => credentials !== null && given !== `Basic ${btoa(credentials)}`;
  const server = createHttpServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    if (denied(request.headers["proxy-authorization"])) response.writeHead(407).end();
    else response.end(`through ${request.headers.host}`);
  });
  server.on("connect", (request, client: Socket) => {
    asked.push(`CONNECT ${request.url}`);
    if (denied(request.headers["proxy-authorization"])) return void client.end("HTTP/1.1 407 Who\r\n\r\n");
    const upstream = connect(Number(request.url?.split(":").at(-1)), "127.0.0.1", () => {
      client.write("HTTP/1.1 200 Connection established\r\n\r\n");
      upstream.pipe(client).pipe(upstream);
    });
    upstream.on("error", () => client.end("HTTP/1.1 502 No\r\n\r\n"));
    client.on("close", () => upstream.destroy());
  });
  return { asked, ...(await listen(server)) };
}

test("a certificate that nobody vouches for is a tls failure, not to be tried again; --insecure takes it", async () => {
  await using server = await secureServer();
  const url = `https://tls.example:${server.port}/a?b`;
  const outcome = await fetchOnce(url, { lookup: toLoopback });
  assert.ok(outcome.kind === "failed");
  assert.deepEqual([outcome.code, outcome.retryable, outcome.sinceStartMs, outcome.message], ["tls", false, null, "the certificate is self-signed"]);
  assert.equal(bodyOf(await fetchOnce(url, { lookup: toLoopback, insecure: true })), `secure tls.example:${server.port}/a?b`);
});

test("a good certificate is taken, one for another name is not, and connections are resumed", async (t) => {
  const before = getCACertificates("default");
  setDefaultCACertificates([...before, CERT]);
  t.after(() => setDefaultCACertificates(before));
  await using server = await secureServer();
  await using fetcher = openFetcher({ lookup: toLoopback });
  for (const path of ["/1", "/2"]) assert.match(bodyOf(await fetcher.fetch(exchangeFor(`https://tls.example:${server.port}${path}`))), /^secure/);
  assert.match(bodyOf(await fetcher.fetch(exchangeFor(`https://www.tls.example.:${server.port}/`))), /^secure/);
  const outcome = await fetcher.fetch(exchangeFor(`https://other.example:${server.port}/`));
  assert.equal(bodyOf(outcome), "failed: tls (the certificate is for another host)");
});

test("https asked of a server that speaks http is a tls failure, http asked of one that speaks https a failure too", async () => {
  await using plain = await startProxy();
  await using secure = await secureServer();
  assert.match(bodyOf(await fetchOnce(`https://127.0.0.1:${plain.port}/`)), /^failed: tls/);
  assert.match(bodyOf(await fetchOnce(`http://127.0.0.1:${secure.port}/`)), /^(failed: (protocol|reset)|$)/);
});

test("a handshake that never ends is stopped by the time to connect", async () => {
  await using silent = await startRawServer(() => null);
  const outcome = await fetchOnce(`https://127.0.0.1:${silent.port}/`, { timeoutMs: 200 });
  assert.equal(bodyOf(outcome), "failed: timeout (no connection in time)");
  await silent.idle();
});

test("http pages go through a proxy in absolute form, https ones through a tunnel", async () => {
  await using server = await secureServer();
  await using proxy = await startProxy("us:er%zz");
  const options = { proxy: [`http://us:er%zz@127.0.0.1:${proxy.port}`], insecure: true };
  await using fetcher = openFetcher(options);
  for (let i = 0; i < 2; i++) assert.equal(bodyOf(await fetcher.fetch(exchangeFor("http://page.example/a?b=%zz"))), "through page.example");
  const secure = await fetcher.fetch(exchangeFor(`https://tls.example:${server.port}/s`));
  assert.equal(bodyOf(secure), `secure tls.example:${server.port}/s`);
  assert.equal(secure.host, null);
  assert.deepEqual(proxy.asked, ["GET http://page.example/a?b=%zz", "GET http://page.example/a?b=%zz", `CONNECT tls.example:${server.port}`]);
});

test("a proxy that refuses, wants other credentials or is not there fails the page as connect", async () => {
  await using proxy = await startProxy("a:b");
  const through = (url: string, address: string) => fetchOnce(url, { proxy: [address], insecure: true });
  const refused = await through("https://page.example:1/", `http://a:b@127.0.0.1:${proxy.port}`);
  assert.equal(bodyOf(refused), "failed: connect (the proxy refused the connection)");
  assert.equal(bodyOf(await through("https://page.example/", `http://127.0.0.1:${proxy.port}`)), "failed: connect (the proxy asks for credentials)");
  assert.equal(bodyOf(await through("http://page.example/", "http://127.0.0.1:1")), "failed: connect (connection refused)");
});

test("several proxies take turns, one request after the other", async () => {
  await using one = await startProxy();
  await using two = await startProxy();
  await using three = await startProxy();
  await using fetcher = openFetcher({ proxy: [one, two, three].map(({ port }) => `127.0.0.1:${port}`), perHostConcurrency: 1 });
  for (let i = 0; i < 9; i++) await fetcher.fetch(exchangeFor(`http://page.example/${i}`));
  assert.deepEqual(
    [one, two, three].map(({ asked }) => asked.length),
    [3, 3, 3],
  );
});

test("behind a proxy the target's own address is checked too, the proxy's is not", async () => {
  await using proxy = await startProxy();
  const options = { proxy: [`http://127.0.0.1:${proxy.port}`], addresses: { refusePrivate: true, allow: [] } };
  const lookup: Lookup = (name, callback) => callback(null, [{ address: name === "inner.example" ? "10.1.2.3" : "192.88.0.1", family: 4 }]);
  for (const host of ["inner.example", "127.0.0.1", "[fd00::1]"]) {
    assert.match(bodyOf(await fetchOnce(`http://${host}/`, { ...options, lookup })), /^failed: blocked-address/);
  }
  assert.equal(bodyOf(await fetchOnce("http://outer.example/", { ...options, lookup })), "through outer.example");
  assert.deepEqual(proxy.asked, ["GET http://outer.example/"]);
});

test("the environment names proxies where the options do not, and NO_PROXY exempts", async () => {
  await using direct = await startRawServer(() => page("direct"));
  await using proxy = await startProxy();
  const environment = { HTTP_PROXY: `http://127.0.0.1:${proxy.port}`, no_proxy: "near.example, .inside.example,other.example:1" };
  const get = async (host: string) => bodyOf(await fetchOnce(`http://${host}:${direct.port}/`, { environment, lookup: toLoopback }));
  assert.equal(await get("near.example"), "direct");
  assert.equal(await get("deep.near.example"), "direct");
  assert.equal(await get("x.inside.example"), "direct");
  for (const host of ["other.example", "farnear.example"]) assert.equal(await get(host), `through ${host}:${direct.port}`);
});

test("what is not an HTTP proxy is refused at once", () => {
  for (const proxy of ["socks5://127.0.0.1:1", "http://", "ftp://x"]) assert.throws(() => openFetcher({ proxy: [proxy] }), { code: "invalid-options" });
});

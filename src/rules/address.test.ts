/** Which addresses may be connected to: conformance topic ssrf, and cases of our own. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { compileAddressGuard, isLocalAddress, isPublicAddress } from "./address.ts";
import { conformanceCases } from "./url-conformance.ts";

test("ssrf: every address of the conformance data is judged as its sources do", () => {
  const cases = conformanceCases("ssrf")?.filter(({ kind }) => kind === "address") ?? [];
  const wrong = cases.filter(({ input, expected }) => isPublicAddress(input.ip) === expected.blocked);
  const choices = wrong.filter(({ taste }) => taste);
  if (choices.length > 0)
    process.stderr.write(`ssrf: ${choices.length} of ${cases.filter(({ taste }) => taste).length} cases of taste decided the other way\n`);
  assert.deepEqual(
    wrong.filter(({ taste }) => !taste).map(({ input }) => input.ip),
    [],
  );
});

test("public addresses are public", () => {
  for (const ip of [
    "8.8.8.8",
    "1.1.1.1",
    "93.184.216.34",
    "2606:4700:4700::1111",
    "2a00:1450:4001:82a::200e",
    "[2606:4700::1111]",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
  ]) {
    assert.equal(isPublicAddress(ip), true, ip);
  }
});

test("addresses of this machine, its networks and special purposes are not, in whatever form they are written", () => {
  const special = `0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 127.0.0.1 127.255.255.254 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.8 192.0.2.1 192.168.0.1
    198.18.0.1 198.51.100.7 203.0.113.9 224.0.0.1 240.0.0.1 255.255.255.255 :: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:0:7f00:1 64:ff9b::10.0.0.1
    64:ff9b:1::808:808 100::1 2001::1 2001:0:4136:e378:8000:63bf:3f57:fdf2 2001:db8::1 2002:7f00:1:: 2002:808:808:: 3fff::1 5f00::1 fc00::1 fd12:3456::1 fe80::1
    fe80::1%eth0 fec0::1 ff02::1 [::1] [fe80::1%25lo]`;
  for (const ip of special.split(/\s+/)) assert.equal(isPublicAddress(ip), false, ip);
});

test("what is not an address is not public: lax forms are the URL parser's to read", () => {
  for (const text of ["", "localhost", "2130706433", "0x7f.1", "8.8.8", "8.8.8.8.8", "8.8.8.8 ", "256.1.1.1", "1:2:3", ":::", "12345::", "8.8.8.8/8"])
    assert.equal(isPublicAddress(text), false, text);
  fc.assert(fc.property(fc.string(), (text) => typeof isPublicAddress(text) === "boolean"));
});

test("an IPv4 address and its mapped form are judged alike", () => {
  fc.assert(
    fc.property(fc.ipV4(), (ip) => isPublicAddress(ip) === isPublicAddress(`::ffff:${ip}`) && isPublicAddress(ip) === isPublicAddress(`64:ff9b::${ip}`)),
  );
});

test("loopback, private and link-local addresses are local", () => {
  for (const ip of ["127.0.0.1", "::1", "10.1.2.3", "192.168.1.1", "172.20.0.1", "fd00::1", "fe80::1", "::ffff:127.0.0.1"])
    assert.equal(isLocalAddress(ip), true, ip);
  for (const ip of ["8.8.8.8", "203.0.113.9", "2606:4700::1", "100.64.0.1", "nonsense"]) assert.equal(isLocalAddress(ip), false, ip);
});

test("without --refuse-private everything may be reached", () => {
  const guard = compileAddressGuard({ refusePrivate: false, allow: [] });
  for (const ip of ["127.0.0.1", "169.254.169.254", "8.8.8.8"]) assert.equal(guard("any.example", ip), true);
});

test("--allow-address takes hosts, addresses and blocks, and each allows only what it says", () => {
  const guard = compileAddressGuard({ refusePrivate: true, allow: ["intra.example", "localhost", "10.1.0.0/16", "192.168.7.7", "[fd00::]/8", "::1"] });
  const allowed: readonly (readonly [string, string, boolean])[] = [
    ["intra.example", "10.9.9.9", true],
    ["INTRA.example.", "127.0.0.1", true],
    ["deep.intra.example", "10.9.9.9", false],
    ["localhost", "127.0.0.1", true],
    ["x.example", "127.0.0.1", false],
    ["x.example", "10.1.255.255", true],
    ["x.example", "::ffff:10.1.0.1", true],
    ["x.example", "10.2.0.0", false],
    ["192.168.7.7", "192.168.7.7", true],
    ["192.168.7.8", "192.168.7.8", false],
    ["x.example", "fd12::1", true],
    ["x.example", "fe80::1", false],
    ["x.example", "::1", true],
    ["x.example", "8.8.8.8", true],
    ["x.example", "not an address", false],
  ];
  for (const [host, ip, expected] of allowed) assert.equal(guard(host, ip), expected, `${host} ${ip}`);
});

test("entries that are none of these are named, all at once", () => {
  const compile = () => compileAddressGuard({ refusePrivate: true, allow: ["10.0.0.0/33", "1.2.3", "a b", "fine.example", "::1/129", ""] });
  assert.throws(compile, (error: { problems: { message: string }[] }) => {
    assert.deepEqual(
      error.problems.map(({ message }) => message.split(":")[0]),
      ['"10.0.0.0/33"', '"1.2.3"', '"a b"', '"', '""'],
    );
    return true;
  });
});

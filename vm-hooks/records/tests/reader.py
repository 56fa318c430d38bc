#!/usr/bin/env python3
"""Reads a recording as FORMAT.md describes it, with nothing but Python's standard library
(and for zstd, where Python is older than 3.14, the zstandard module or the zstd command).

Prints one JSON object: how many samples each thread has, what was skipped, how it ended.
"""

import json
import pathlib
import re
import subprocess
import sys
import zlib

FILE_HEADER, CHUNK_HEADER, MAX_BYTES = 16, 48, 4 << 20
THREAD, SAMPLES, END = 5, 11, 23
END_REASONS = ["other", "target exited", "interrupted", "duration over", "write failed", "saved",
               "engine failed"]
FORMAT = pathlib.Path(__file__).parent.parent / "FORMAT.md"
KNOWN_KINDS = {int(kind) for kind in re.findall(r"^\| (\d+) \| [A-Z]", FORMAT.read_text(), re.MULTILINE)}


def decompress(stored):
    try:
        from compression import zstd
        return zstd.decompress(stored)
    except ImportError:
        pass
    try:
        import zstandard
        return zstandard.ZstdDecompressor().decompress(stored, max_output_size=MAX_BYTES)
    except ImportError:
        pass
    return subprocess.run(["zstd", "-dc"], input=stored, stdout=subprocess.PIPE, check=True).stdout


def number(data, at, size):
    return int.from_bytes(data[at:at + size], "little")


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value & (2**64 - 1), at


def zigzag(value):
    return value >> 1 ^ -(value & 1)


def varints(data):
    at, values = 0, []
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


def fields(message):
    """A message's fields: number -> list of values, packed ones not yet unpacked."""
    at, found = 0, {}
    while at < len(message):
        key, at = varint(message, at)
        if key & 7 == 0:
            value, at = varint(message, at)
        elif key & 7 == 2:
            length, at = varint(message, at)
            if at + length > len(message):
                raise ValueError("a field is longer than its message")
            value, at = message[at:at + length], at + length
        elif key & 7 in (1, 5):
            length = 8 if key & 7 == 1 else 4
            value, at = message[at:at + length], at + length
        else:
            raise ValueError("a wire type that is not used")
        found.setdefault(key >> 3, []).append(value)
    return found


def repeated(found, field):
    """A repeated number, packed or not."""
    values = []
    for value in found.get(field, []):
        values.extend(varints(value) if isinstance(value, bytes) else [value])
    return values


def good_header(data, at):
    header = data[at:at + CHUNK_HEADER]
    return (len(header) == CHUNK_HEADER and header[:4] == b"VMSC"
            and zlib.crc32(header[:44]) == number(header, 44, 4)
            and number(header, 12, 4) <= MAX_BYTES and number(header, 16, 4) <= MAX_BYTES
            and at + CHUNK_HEADER + number(header, 16, 4) <= len(data))


def chunks(data, damages):
    """The payloads of all whole chunks; what is skipped goes to `damages`."""
    at = FILE_HEADER
    while at < len(data):
        if not good_header(data, at):
            end = at + 1
            while end < len(data) and not good_header(data, end):
                end = data.find(b"VMSC", end + 1)
                end = len(data) if end < 0 else end
            damages.append([at, end - at])
            at = end
            continue
        codec, raw, stored = data[at + 4], number(data, at + 12, 4), number(data, at + 16, 4)
        body = data[at + CHUNK_HEADER:at + CHUNK_HEADER + stored]
        begin, at = at, at + CHUNK_HEADER + stored
        if zlib.crc32(body) != number(data, begin + 20, 4) or codec > 1:
            damages.append([begin, at - begin])
            continue
        payload = decompress(body) if codec == 1 else body
        if len(payload) != raw:
            damages.append([begin, at - begin])
            continue
        yield payload


def read(data):
    if data[:8] != b"\x89VMSCOPE" or zlib.crc32(data[:12]) != number(data, 12, 4):
        sys.exit("not a recording, or its header is damaged")
    if number(data, 8, 2) != 1:
        sys.exit(f"format version {number(data, 8, 2)}; this reads version 1")
    damages, names, counts, unknown, end, last = [], {}, {}, 0, None, 0
    pc_sum = in_order = 0
    for payload in chunks(data, damages):
        at = 0
        while at < len(payload):
            kind, at = varint(payload, at)
            length, at = varint(payload, at)
            message, at = payload[at:at + length], at + length
            unknown += kind not in KNOWN_KINDS
            if kind == THREAD:
                found = fields(message)
                names[found.get(1, [0])[-1]] = found.get(5, [b""])[-1].decode()
            elif kind == SAMPLES:
                found = fields(message)
                time, pc = found.get(1, [0])[-1], 0
                columns = zip(repeated(found, 2), repeated(found, 3), repeated(found, 4))
                for time_delta, thread, pc_delta in columns:
                    time = (time + zigzag(time_delta)) % 2**64
                    pc = (pc + zigzag(pc_delta)) % 2**64
                    in_order += time >= last
                    last = time
                    pc_sum = (pc_sum + pc) % 2**64
                    counts[thread] = counts.get(thread, 0) + 1
            elif kind == END:
                found = fields(message)
                reason = found.get(2, [0])[-1]
                end = END_REASONS[reason if reason < len(END_REASONS) else 0]
    return {
        "samples": sum(counts.values()),
        "in_order": in_order,
        "last_sample": last,
        "pc_sum": pc_sum,
        "threads": [{"key": key, "name": names.get(key), "samples": counts[key]}
                    for key in sorted(counts)],
        "unknown": unknown,
        "damages": damages,
        "end": end,
    }


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file:
        print(json.dumps(read(file.read())))

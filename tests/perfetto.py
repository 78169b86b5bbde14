"""Reads a Perfetto trace: the few messages of trace.proto that Halyard writes. For tests; knows nothing of Halyard."""
import struct
from dataclasses import dataclass, field

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


def fields(data):
    """(field, value) of a message: numbers, or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        number, kind = key >> 3, key & 7
        if kind == 0:
            yield number, varint()
        elif kind == 1:
            yield number, struct.unpack_from("<Q", data, at)[0]
            at += 8
        elif kind == 2:
            size = varint()
            if at + size > len(data):
                raise ValueError(f"field {number} of {size} bytes ends behind its message")
            yield number, data[at : at + size]
            at += size
        else:
            raise ValueError(f"field {number} has wire type {kind}")


def message(data):
    """The last value of each field."""
    return dict(fields(data))


@dataclass
class Track:
    name: str
    parent: int = 0
    kind: str = "track"  # process, thread, counter
    process: int = 0  # its number, of processes and threads


@dataclass
class Event:
    time: int
    kind: int
    track: int
    name: str = ""
    category: str = ""
    flows: list = field(default_factory=list)
    value: int = 0
    arguments: dict = field(default_factory=dict)


@dataclass
class Slice:
    track: int
    name: str
    category: str
    begin: int
    end: int
    flows: list
    depth: int
    arguments: dict


class Trace:
    """A file of one process; or the files of several, one after another, with a packet sequence for each."""

    def __init__(self, path, processes=1):
        self.tracks = {}
        self.events = []
        interned_names = {}  # by sequence: names, categories
        with open(path, "rb") as file:
            data = file.read()
        begun = set()  # sequences
        for number, packet in fields(data):
            assert number == 1, f"field {number} of the trace is no packet"
            content = message(packet)
            names, categories = interned_names.setdefault(content[10], ({}, {}))
            for interned in (value for key, value in fields(packet) if key == 12):
                for key, entry in fields(interned):
                    entry = message(entry)
                    {1: categories, 2: names}[key][entry[1]] = entry[2].decode()
            if 60 in content:
                self._describe(content[60])
            if 11 in content:
                assert bool(content[13] & 1) == (content[10] not in begun), "state is cleared with the first event only"
                begun.add(content[10])
                self._event(content, names, categories)
        assert len(interned_names) == processes, f"{len(interned_names)} sequences, of {processes} processes"

    def _describe(self, data):
        content = message(data)
        track = Track(content.get(2, b"").decode(), content.get(5, 0))
        if 3 in content:
            track = Track(message(content[3])[6].decode(), 0, "process", message(content[3])[1])
        elif 4 in content:
            track = Track(message(content[4])[5].decode(), 1, "thread", message(content[4])[1])
        elif 8 in content:
            track.kind = "counter"
        assert content[1] not in self.tracks, "each track is described once"
        self.tracks[content[1]] = track

    def _event(self, content, names, categories):
        event = Event(content[8], 0, 0)
        for key, value in fields(content[11]):
            if key == 9:
                event.kind = value
            elif key == 11:
                event.track = value
            elif key == 10:
                event.name = names[value]
            elif key == 23:
                event.name = value.decode()
            elif key == 3:
                event.category = categories[value]
            elif key == 30:
                event.value = value - (1 << 64) if value >> 63 else value
            elif key == 47:
                event.flows.append(value)
            elif key == 4:
                argument = message(value)
                event.arguments[argument[10].decode()] = argument[6].decode() if 6 in argument else argument[3]
        assert event.track in self.tracks, "a track is described before its first event"
        self.events.append(event)

    def slices(self):
        """Every slice; begins and ends of each track are matched as a reader does: by time, then by order in the file."""
        done, open_slices = [], {}
        for event in sorted(self.events, key=lambda event: event.time):
            stack = open_slices.setdefault(event.track, [])
            if event.kind == BEGIN:
                stack.append(Slice(event.track, event.name, event.category, event.time, 0, event.flows, len(stack),
                                   event.arguments))
                done.append(stack[-1])
            elif event.kind == END:
                assert stack, f"an end without a begin on track {self.tracks[event.track]}"
                stack.pop().end = event.time
        for stack in open_slices.values():
            assert not stack, f"slices without an end: {stack}"
        return done

    def children(self, parent):
        return [s for s in self.slices() if s.track == parent.track and s.depth == parent.depth + 1
                and parent.begin <= s.begin and s.end <= parent.end]

    def flow(self, number):
        """Events with that flow, in the order in which arrows go."""
        return sorted((event for event in self.events if number in event.flows), key=lambda event: event.time)

    def print(self):
        for event in sorted(self.events, key=lambda event: event.time):
            kind = {BEGIN: "begin", END: "end", INSTANT: "instant", COUNTER: "count"}[event.kind]
            flows = " ".join(f"{flow & 0xFFFF:x}" for flow in event.flows)
            print(event.time, kind, self.tracks[event.track].name or event.track, event.category, event.name,
                  event.value if event.kind == COUNTER else "", flows)


if __name__ == "__main__":
    import sys

    Trace(sys.argv[1]).print()

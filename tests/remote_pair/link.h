// Link: a connection between a client and a server that a test can damage: cut, stopped or slowed down after
// a number of bytes of one direction.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "remote/address.h"

namespace halyard::remote {

enum Direction : uint8_t { kToServer = 0, kToClient = 1 };

struct Damage {
  enum Kind : uint8_t { none, cut, stop, slow };
  Kind kind = none;
  Direction direction = kToServer;
  uint64_t after = 0;  // bytes; slow: bytes at a time
};

class Link {
 public:
  explicit Link(Damage damage) : damage_(damage) {
    int ends[2];
    for (int side = 0; side < 2; ++side) {
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) std::abort();
      outer_[side] = Descriptor(ends[0]);
      inner_[side] = Descriptor(ends[1]);
    }
    thread_ = std::thread([this] { run(); });
  }
  ~Link() { end(); }
  // Passes nothing on any more.
  void end() {
    is_over_.store(true);
    if (thread_.joinable()) thread_.join();
  }
  // Once each.
  Descriptor client() { return std::move(outer_[0]); }
  Descriptor server() { return std::move(outer_[1]); }
  // After end(): where messages began that were passed on, and where the last one ended.
  const std::vector<uint64_t>& boundaries(Direction direction) const { return flows_[direction].boundaries; }
  bool has_struck() const { return has_struck_.load(); }

 private:
  struct Flow {
    uint64_t passed = 0;
    std::vector<uint64_t> boundaries = {0};
    std::vector<uint8_t> header;
    uint64_t left = 0;  // of the message under way
    void look(const uint8_t* bytes, size_t size) {
      for (size_t i = 0; i < size;) {
        if (left == 0) {
          header.push_back(bytes[i++]);
          if (header.size() < 8) continue;
          uint32_t sizes[2];
          std::memcpy(sizes, header.data(), 8);
          header.clear();
          left = uint64_t{sizes[0]} + sizes[1];
          boundaries.push_back(boundaries.back() + 8 + left);
          continue;
        }
        const size_t count = std::min<uint64_t>(left, size - i);
        left -= count;
        i += count;
      }
    }
  };

  void run() {
    pollfd waits[2] = {{inner_[0].get(), POLLIN, 0}, {inner_[1].get(), POLLIN, 0}};
    while (!is_over_.load()) {
      ::poll(waits, 2, 2);
      for (const Direction direction : {kToServer, kToClient})
        if (waits[direction].revents && !pass_on(direction)) waits[direction].fd = -1;
      if (has_struck() && damage_.kind == Damage::cut) break;
    }
    for (Descriptor& end : inner_) end = Descriptor();
  }

  // False: this direction has ended.
  bool pass_on(Direction direction) {
    uint8_t buffer[65536];
    const bool is_damaged = damage_.kind != Damage::none && damage_.direction == direction;
    Flow& flow = flows_[direction];
    size_t size = sizeof buffer;
    if (is_damaged && damage_.kind == Damage::slow) {
      size = std::max<uint64_t>(damage_.after, 1);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    } else if (is_damaged) {
      size = std::min<uint64_t>(size, damage_.after - flow.passed);
      if (size == 0) {
        has_struck_.store(true);
        return false;
      }
    }
    const ssize_t count = ::recv(inner_[direction].get(), buffer, size, 0);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    const int other = inner_[1 - direction].get();
    if (count == 0) {
      ::shutdown(other, SHUT_WR);
      return false;
    }
    flow.look(buffer, static_cast<size_t>(count));
    for (ssize_t sent = 0; sent < count && !is_over_.load();) {
      const ssize_t now = ::send(other, buffer + sent, static_cast<size_t>(count - sent), MSG_NOSIGNAL);
      if (now >= 0) {
        sent += now;
      } else if (errno == EAGAIN) {
        pollfd wait = {other, POLLOUT, 0};
        ::poll(&wait, 1, 2);
      } else {
        return false;
      }
    }
    flow.passed += static_cast<uint64_t>(count);
    if (is_damaged && damage_.kind != Damage::slow && flow.passed == damage_.after) {
      has_struck_.store(true);
      return false;
    }
    return true;
  }

  const Damage damage_;
  Descriptor outer_[2], inner_[2];
  Flow flows_[2];
  std::atomic<bool> is_over_ = false;
  std::atomic<bool> has_struck_ = false;
  std::thread thread_;
};

}  // namespace halyard::remote

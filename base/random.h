// A small seeded generator whose numbers are the same on every machine and
// release, unlike the distributions of the standard library. Every random
// choice in Regatta comes from one of these, and its seed is recorded.
//
// Algorithm: xoshiro256** seeded through splitmix64 (Blackman and Vigna,
// "Scrambled linear pseudorandom number generators", 2018).
//
// Not thread-safe: one generator per thread.
#ifndef REGATTA_BASE_RANDOM_H_
#define REGATTA_BASE_RANDOM_H_

#include <array>
#include <cstdint>

namespace regatta {

class Random {
 public:
  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_) {
      seed += 0x9E3779B97F4A7C15u;
      uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
      z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
      word = z ^ (z >> 31);
    }
  }

  // Uniform over all 64-bit values.
  uint64_t Next() {
    const uint64_t result = Rotl(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = Rotl(state_[3], 45);
    return result;
  }

  // Uniform in [0, n). REQUIRES: n > 0.
  uint64_t Below(uint64_t n) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(Next()) * n) >>
                                 64);
  }

  // Uniform in [0, 1).
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

 private:
  static uint64_t Rotl(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  std::array<uint64_t, 4> state_;
};

}  // namespace regatta

#endif  // REGATTA_BASE_RANDOM_H_

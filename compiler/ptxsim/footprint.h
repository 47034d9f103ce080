// Which 32-byte sectors of global memory a launch read and wrote at least once.
#ifndef REGATTA_COMPILER_PTXSIM_FOOTPRINT_H_
#define REGATTA_COMPILER_PTXSIM_FOOTPRINT_H_

#include <bit>
#include <cstdint>
#include <vector>

namespace regatta::ptxsim {

class Footprint {
 public:
  explicit Footprint(size_t buffers) : loads_(buffers), stores_(buffers) {}

  // `sector`: offset within the buffer divided by 32.
  void Touch(size_t buffer, uint64_t buffer_bytes, uint64_t sector,
             bool store) {
    std::vector<uint64_t>& bits = store ? stores_[buffer] : loads_[buffer];
    if (bits.empty()) bits.resize(buffer_bytes / 32 / 64 + 1);
    bits[sector / 64] |= uint64_t{1} << sector % 64;
  }

  bool Loaded(size_t buffer) const { return !loads_[buffer].empty(); }
  bool Stored(size_t buffer) const { return !stores_[buffer].empty(); }
  uint64_t LoadSectors() const { return Count(loads_); }
  uint64_t StoreSectors() const { return Count(stores_); }

 private:
  using Bits = std::vector<std::vector<uint64_t>>;
  static uint64_t Count(const Bits& buffers) {
    uint64_t count = 0;
    for (const auto& bits : buffers) {
      for (uint64_t word : bits) count += std::popcount(word);
    }
    return count;
  }

  Bits loads_;
  Bits stores_;
};

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_FOOTPRINT_H_

#include "device_agent/verify/input_data.h"

#include <algorithm>

#include "absl/types/span.h"
#include "compiler/module/tensor_bytes.h"

namespace regatta {
namespace {

constexpr int64_t kChunk = 4096;

// The finaliser of splitmix64 over a counter.
uint64_t Hash(uint64_t seed, int tensor, int64_t element) {
  uint64_t z = seed + 0x9E3779B97F4A7C15u * static_cast<uint64_t>(element + 1) +
               0xD1B54A32D192ED03u * static_cast<uint64_t>(tensor + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// Bits of a float in [-1, 1), sign included, that are exact in `type`.
int Bits(DType type) {
  switch (type) {
    case DType::kF16:
      return 10;
    case DType::kBF16:
      return 8;
    default:
      return 24;
  }
}

}  // namespace

double InputValue(uint64_t seed, int tensor, int64_t element, DType type) {
  const uint64_t hash = Hash(seed, tensor, element);
  if (!IsFloat(type)) return static_cast<double>(hash >> 60) - 8;
  const int bits = Bits(type);
  const double steps = static_cast<double>(hash >> (64 - bits));
  return steps / static_cast<double>(uint64_t{1} << (bits - 1)) - 1;
}

std::vector<double> InputValues(uint64_t seed, int tensor, int64_t elements,
                                DType type) {
  std::vector<double> values(elements);
  for (int64_t e = 0; e < elements; ++e) {
    values[e] = InputValue(seed, tensor, e, type);
  }
  return values;
}

void FillInput(uint64_t seed, int tensor, int64_t elements, DType type,
               void* memory) {
  double chunk[kChunk];
  char* out = static_cast<char*>(memory);
  for (int64_t first = 0; first < elements; first += kChunk) {
    const int64_t count = std::min(kChunk, elements - first);
    for (int64_t e = 0; e < count; ++e) {
      chunk[e] = InputValue(seed, tensor, first + e, type);
    }
    WriteValues(absl::MakeConstSpan(chunk, count), type,
                out + first * DTypeBytes(type));
  }
}

}  // namespace regatta

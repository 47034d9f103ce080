// Format: "RGCU", then little-endian: u32 version, u64 bytes of the
// architecture's name, of the cubin and of the PTX; then the three, with
// nothing after them.
#include "compiler/module/cuda_binary.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "compiler/module/little_endian.h"

namespace regatta {
namespace {

constexpr std::string_view kMagic = "RGCU";
constexpr uint32_t kFormatVersion = 1;
constexpr size_t kHeaderBytes = 4 + 4 + 3 * 8;

}  // namespace

std::string SerializeCudaBinary(const CudaBinary& binary) {
  std::string bytes(kMagic);
  AppendLittleEndian(bytes, kFormatVersion);
  for (const std::string* part : {&binary.arch, &binary.cubin, &binary.ptx}) {
    AppendLittleEndian<uint64_t>(bytes, part->size());
  }
  return absl::StrCat(bytes, binary.arch, binary.cubin, binary.ptx);
}

absl::StatusOr<CudaBinary> ParseCudaBinary(std::string_view bytes) {
  const auto error = [](size_t offset, const std::string& message) {
    return absl::InvalidArgumentError(
        absl::StrCat("CUDA binary: at byte ", offset, ": ", message));
  };
  if (bytes.substr(0, kMagic.size()) != kMagic) {
    return error(0, "these bytes are no CUDA binary");
  }
  if (bytes.size() < kHeaderBytes) {
    return error(bytes.size(), "the header is cut off");
  }
  const uint32_t version = LittleEndian<uint32_t>(bytes, 4);
  if (version != kFormatVersion) {
    return error(4,
                 absl::StrCat("the format has version ", version,
                              "; this program reads version ", kFormatVersion));
  }
  CudaBinary binary;
  std::string_view rest = bytes.substr(kHeaderBytes);
  size_t field = 8;
  for (std::string* part : {&binary.arch, &binary.cubin, &binary.ptx}) {
    const uint64_t size = LittleEndian<uint64_t>(bytes, field);
    if (size > rest.size()) return error(field, "what it counts is cut off");
    *part = std::string(rest.substr(0, size));
    rest.remove_prefix(size);
    field += 8;
  }
  if (!rest.empty()) {
    return error(bytes.size() - rest.size(), "more bytes follow than it has");
  }
  return binary;
}

}  // namespace regatta

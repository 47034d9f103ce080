#include "compiler/ptxsim/cubin.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace regatta::ptxsim {
namespace {

constexpr size_t kHeaderBytes = 64;
constexpr size_t kSectionBytes = 64;
constexpr size_t kSymbolBytes = 24;
constexpr size_t kInstructionBytes = 16;
constexpr uint16_t kCudaMachine = 190;
// Of every block from sm_90 on, counted in the size of .nv.shared.NAME.
constexpr uint32_t kReservedShared = 1024;
constexpr int kFirstSmThatReserves = 90;

// Formats and tags of .nv.info records.
constexpr uint8_t kSizedFormat = 4;  // a 16-bit length and as many bytes
constexpr uint8_t kMaxThreads = 0x05;
constexpr uint8_t kFrameBytes = 0x11;
constexpr uint8_t kMinStackBytes = 0x12;
constexpr uint8_t kRegisters = 0x2F;

absl::Status Bad(std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("no readable cubin: ", std::string(what)));
}

struct Section {
  std::string_view name;
  uint32_t link = 0;
  uint64_t size = 0;
  std::string_view data;  // empty for a section without bytes in the file
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  absl::StatusOr<Cubin> Run() {
    RETURN_IF_ERROR(ReadHeader());
    RETURN_IF_ERROR(ReadSections());
    RETURN_IF_ERROR(ReadSymbols());
    for (const Section& section : sections_) {
      if (section.name.substr(0, 6) == ".text.") ReadText(section);
    }
    for (const Section& section : sections_) RETURN_IF_ERROR(ReadInfo(section));
    for (auto& [name, kernel] : kernels_) {
      cubin_.kernels.push_back(std::move(kernel));
    }
    return std::move(cubin_);
  }

 private:
  template <typename T>
  std::optional<T> At(std::string_view bytes, uint64_t offset) const {
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) {
      return std::nullopt;
    }
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
  }
  std::string_view Part(uint64_t offset, uint64_t size) const {
    if (offset > bytes_.size() || bytes_.size() - offset < size) return {};
    return bytes_.substr(offset, size);
  }
  // The text at `offset` of a string table.
  static std::string_view Name(std::string_view table, uint64_t offset) {
    if (offset >= table.size()) return {};
    const size_t end = table.find('\0', offset);
    if (end == std::string_view::npos) return {};
    return table.substr(offset, end - offset);
  }

  absl::Status ReadHeader();
  absl::Status ReadSections();
  absl::Status ReadSymbols();
  void ReadText(const Section& section);
  absl::Status ReadInfo(const Section& section);
  void ReadRecord(const Section& section, uint8_t tag, std::string_view value);

  std::string_view bytes_;
  std::vector<Section> sections_;
  std::vector<std::string_view> symbols_;
  std::map<std::string, CubinKernel, std::less<>> kernels_;
  Cubin cubin_;
};

absl::Status Reader::ReadHeader() {
  if (bytes_.size() < kHeaderBytes ||
      bytes_.substr(0, 6) != std::string_view("\x7F"
                                              "ELF\x02\x01",
                                              6)) {
    return Bad("not a 64-bit little-endian ELF file");
  }
  if (At<uint16_t>(bytes_, 18) != kCudaMachine) return Bad("not for a GPU");
  // The second byte of the flags is the architecture.
  cubin_.sm = (*At<uint32_t>(bytes_, 48) >> 8) & 0xFF;
  return absl::OkStatus();
}

absl::Status Reader::ReadSections() {
  const uint64_t table = *At<uint64_t>(bytes_, 40);
  const uint16_t entry_bytes = *At<uint16_t>(bytes_, 58);
  const uint16_t count = *At<uint16_t>(bytes_, 60);
  const uint16_t names = *At<uint16_t>(bytes_, 62);
  if (entry_bytes != kSectionBytes || names >= count) {
    return Bad("strange section table");
  }
  const std::string_view entries = Part(table, uint64_t{count} * kSectionBytes);
  if (entries.empty()) return Bad("section table beyond the end");
  const auto offset_of = [&](int i) {
    return *At<uint64_t>(entries, i * kSectionBytes + 24);
  };
  const auto size_of = [&](int i) {
    return *At<uint64_t>(entries, i * kSectionBytes + 32);
  };
  const std::string_view name_table = Part(offset_of(names), size_of(names));
  constexpr uint32_t kNoBits = 8;
  for (int i = 0; i < count; ++i) {
    const uint64_t at = i * kSectionBytes;
    Section section = {.name = Name(name_table, *At<uint32_t>(entries, at)),
                       .link = *At<uint32_t>(entries, at + 40),
                       .size = size_of(i)};
    if (*At<uint32_t>(entries, at + 4) != kNoBits) {
      section.data = Part(offset_of(i), section.size);
      if (section.data.size() != section.size) {
        return Bad("a section beyond the end");
      }
    }
    sections_.push_back(section);
  }
  return absl::OkStatus();
}

absl::Status Reader::ReadSymbols() {
  for (const Section& section : sections_) {
    if (section.name != ".symtab") continue;
    if (section.link >= sections_.size()) return Bad("symbols without names");
    const std::string_view names = sections_[section.link].data;
    for (uint64_t at = 0; at + kSymbolBytes <= section.data.size();
         at += kSymbolBytes) {
      symbols_.push_back(Name(names, *At<uint32_t>(section.data, at)));
    }
  }
  return absl::OkStatus();
}

void Reader::ReadText(const Section& section) {
  const std::string name(section.name.substr(6));
  CubinKernel& kernel = kernels_[name];
  kernel.name = name;
  for (uint64_t at = 0; at + kInstructionBytes <= section.data.size();
       at += kInstructionBytes) {
    ++kernel.instructions[*At<uint16_t>(section.data, at) & 0x1FF];
  }
}

absl::Status Reader::ReadInfo(const Section& section) {
  constexpr std::string_view kShared = ".nv.shared.";
  if (section.name.substr(0, kShared.size()) == kShared) {
    const auto kernel = kernels_.find(section.name.substr(kShared.size()));
    if (kernel == kernels_.end()) return absl::OkStatus();
    const uint32_t reserved =
        cubin_.sm >= kFirstSmThatReserves ? kReservedShared : 0;
    kernel->second.static_shared_bytes = static_cast<uint32_t>(
        std::max<uint64_t>(section.size, reserved) - reserved);
    return absl::OkStatus();
  }
  if (section.name.substr(0, 8) != ".nv.info") return absl::OkStatus();
  for (uint64_t at = 0; at < section.data.size();) {
    const auto format = At<uint8_t>(section.data, at);
    const auto tag = At<uint8_t>(section.data, at + 1);
    const auto length = At<uint16_t>(section.data, at + 2);
    if (!length.has_value()) return Bad("a record of .nv.info is cut off");
    at += 4;
    if (*format != kSizedFormat) continue;  // its value was the 16 bits
    if (section.data.size() - at < *length) {
      return Bad("a record of .nv.info is cut off");
    }
    ReadRecord(section, *tag, section.data.substr(at, *length));
    at += *length;
  }
  return absl::OkStatus();
}

void Reader::ReadRecord(const Section& section, uint8_t tag,
                        std::string_view value) {
  const auto first = At<uint32_t>(value, 0);
  const auto second = At<uint32_t>(value, 4);
  if (!first.has_value() || !second.has_value()) return;
  constexpr std::string_view kOwn = ".nv.info.";
  if (section.name.substr(0, kOwn.size()) == kOwn) {
    const auto kernel = kernels_.find(section.name.substr(kOwn.size()));
    const auto third = At<uint32_t>(value, 8);
    if (kernel == kernels_.end() || tag != kMaxThreads || !third.has_value()) {
      return;
    }
    kernel->second.max_threads = *first * *second * *third;
    return;
  }
  if (*first >= symbols_.size()) return;
  const auto kernel = kernels_.find(symbols_[*first]);
  if (kernel == kernels_.end()) return;
  if (tag == kRegisters) kernel->second.registers = static_cast<int>(*second);
  if (tag == kFrameBytes) kernel->second.frame_bytes = *second;
  if (tag == kMinStackBytes) kernel->second.min_stack_bytes = *second;
}

}  // namespace

uint32_t CubinKernel::Count(SassOpcode opcode) const {
  const auto found = instructions.find(static_cast<uint16_t>(opcode));
  return found == instructions.end() ? 0 : found->second;
}

uint32_t CubinKernel::InstructionCount() const {
  uint32_t total = 0;
  for (const auto& [opcode, count] : instructions) total += count;
  return total;
}

const CubinKernel* Cubin::Find(std::string_view name) const {
  for (const CubinKernel& kernel : kernels) {
    if (kernel.name == name) return &kernel;
  }
  return nullptr;
}

absl::StatusOr<Cubin> ReadCubin(std::string_view bytes) {
  return Reader(bytes).Run();
}

}  // namespace regatta::ptxsim

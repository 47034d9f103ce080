// Format: "RGTM", then little-endian: u32 version, u64 bytes of the JSON
// description, u64 bytes of `loadable`, u64 bytes of `relocatable`; then the
// three, with nothing after them.
#include <array>
#include <limits>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/module/c_identifier.h"
#include "compiler/module/json_fields.h"
#include "compiler/module/little_endian.h"
#include "compiler/module/module.h"
#include "nlohmann/json.hpp"

namespace regatta {
namespace {

using nlohmann::json;

constexpr std::string_view kMagic = "RGTM";
constexpr uint32_t kFormatVersion = 3;
constexpr size_t kHeaderBytes = 4 + 4 + 3 * 8;
constexpr uint64_t kMaxDescriptionBytes = 16 << 20;
constexpr int64_t kMaxBytes = int64_t{1} << 40;  // of one buffer
constexpr int64_t kMaxAlignment = 1 << 20;
constexpr int64_t kMaxImage = 1 << 24;
constexpr int64_t kMaxThreads = 1 << 16;
constexpr int64_t kMaxInt = std::numeric_limits<int32_t>::max();

constexpr std::array<std::pair<std::string_view, BufferRole>, 4> kRoles = {
    {{"input", BufferRole::kInput},
     {"output", BufferRole::kOutput},
     {"constant", BufferRole::kConstant},
     {"workspace", BufferRole::kWorkspace}}};

constexpr std::array<std::pair<std::string_view, MemorySpace>, 2> kSpaces = {
    {{"host", MemorySpace::kHost}, {"device", MemorySpace::kDevice}}};

constexpr std::array<DType, 7> kDTypes = {
    DType::kF64, DType::kF32, DType::kF16, DType::kBF16,
    DType::kI32, DType::kI8,  DType::kBool};

template <typename T, size_t n>
std::string WordFor(const std::array<std::pair<std::string_view, T>, n>& words,
                    T value) {
  for (const auto& [word, candidate] : words) {
    if (candidate == value) return std::string(word);
  }
  return "";
}

template <typename T, size_t n>
absl::StatusOr<T> Word(
    const JsonFields& fields, const char* field,
    const std::array<std::pair<std::string_view, T>, n>& words) {
  ASSIGN_OR_RETURN(const std::string text, fields.String(field));
  for (const auto& [word, value] : words) {
    if (word == text) return value;
  }
  return fields.Error(field, "has an unknown value");
}

absl::StatusOr<DType> AnyDType(const JsonFields& fields, const char* field) {
  ASSIGN_OR_RETURN(const std::string text, fields.String(field));
  for (DType type : kDTypes) {
    if (DTypeName(type) == text) return type;
  }
  return fields.Error(field, "is no element type");
}

json Describe(const ModuleBuffer& buffer) {
  return {{"name", buffer.name},
          {"role", WordFor(kRoles, buffer.role)},
          {"dtype", std::string(DTypeName(buffer.dtype))},
          {"shape", buffer.shape},
          {"bytes", buffer.bytes},
          {"alignment", buffer.alignment},
          {"space", WordFor(kSpaces, buffer.space)},
          {"workspace_offset", buffer.workspace_offset},
          {"packing_kernel", buffer.packing_kernel},
          {"image_width", buffer.image_width},
          {"image_height", buffer.image_height}};
}

json Describe(const ModuleKernel& kernel) {
  return {{"entry", kernel.entry},
          {"arguments", kernel.arguments},
          {"grid", kernel.grid},
          {"group", kernel.group},
          {"shared_bytes", kernel.shared_bytes}};
}

json Describe(const Module& module) {
  json buffers = json::array();
  for (const ModuleBuffer& buffer : module.buffers) {
    buffers.push_back(Describe(buffer));
  }
  json kernels = json::array();
  for (const ModuleKernel& kernel : module.kernels) {
    kernels.push_back(Describe(kernel));
  }
  return {{"name", module.name},
          {"workload", module.workload},
          {"workload_key", module.workload_key},
          {"target", module.target},
          {"space", module.space},
          {"space_version", module.space_version},
          {"schedule", module.schedule},
          {"compiler_version", module.compiler_version},
          {"threads", module.threads},
          {"buffers", std::move(buffers)},
          {"kernels", std::move(kernels)},
          {"host_sequence", module.host_sequence},
          {"workspace_bytes", module.workspace_bytes}};
}

// Absent when the elements of `shape` need more than kMaxBytes.
std::optional<int64_t> ShapeBytes(const ModuleBuffer& buffer) {
  int64_t bytes = DTypeBytes(buffer.dtype);
  for (int64_t extent : buffer.shape) {
    if (bytes > kMaxBytes / extent) return std::nullopt;
    bytes *= extent;
  }
  return bytes;
}

absl::StatusOr<ModuleBuffer> ReadBuffer(const JsonFields& fields,
                                        int64_t workspace_bytes) {
  ModuleBuffer buffer;
  ASSIGN_OR_RETURN(buffer.name, fields.String("name"));
  ASSIGN_OR_RETURN(buffer.role, Word(fields, "role", kRoles));
  ASSIGN_OR_RETURN(buffer.dtype, AnyDType(fields, "dtype"));
  ASSIGN_OR_RETURN(buffer.shape, fields.Ints("shape", 1, kMaxBytes));
  ASSIGN_OR_RETURN(buffer.bytes, fields.Int("bytes", 0, kMaxBytes));
  ASSIGN_OR_RETURN(buffer.alignment, fields.Int("alignment", 1, kMaxAlignment));
  ASSIGN_OR_RETURN(buffer.space, Word(fields, "space", kSpaces));
  ASSIGN_OR_RETURN(buffer.workspace_offset,
                   fields.Int("workspace_offset", 0, kMaxBytes));
  ASSIGN_OR_RETURN(buffer.packing_kernel, fields.String("packing_kernel"));
  ASSIGN_OR_RETURN(buffer.image_width, fields.Int("image_width", 0, kMaxImage));
  ASSIGN_OR_RETURN(buffer.image_height,
                   fields.Int("image_height", 0, kMaxImage));
  if ((buffer.alignment & (buffer.alignment - 1)) != 0) {
    return fields.Error("alignment", "must be a power of two");
  }
  if ((buffer.image_width > 0) != (buffer.image_height > 0) ||
      (buffer.image_width > 0 && (buffer.role != BufferRole::kWorkspace ||
                                  buffer.space != MemorySpace::kDevice))) {
    return fields.Error("image_width", "is of no image in a device's memory");
  }
  if (buffer.role == BufferRole::kWorkspace) {
    if (buffer.space == MemorySpace::kDevice) return buffer;
    if (buffer.workspace_offset > workspace_bytes ||
        buffer.bytes > workspace_bytes - buffer.workspace_offset) {
      return fields.Error("bytes", "leaves the workspace");
    }
  } else if (ShapeBytes(buffer) != buffer.bytes) {
    return fields.Error("bytes", "is not what shape and dtype need");
  }
  return buffer;
}

template <typename To>
std::vector<To> Narrowed(const std::vector<int64_t>& values) {
  return std::vector<To>(values.begin(), values.end());
}

absl::StatusOr<ModuleKernel> ReadKernel(const JsonFields& fields,
                                        int64_t buffers) {
  ModuleKernel kernel;
  ASSIGN_OR_RETURN(kernel.entry, fields.String("entry"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> arguments,
                   fields.Ints("arguments", 0, buffers - 1));
  kernel.arguments = Narrowed<int>(arguments);
  ASSIGN_OR_RETURN(kernel.grid, fields.Ints("grid", 1, kMaxBytes));
  ASSIGN_OR_RETURN(kernel.group, fields.Ints("group", 1, kMaxBytes));
  ASSIGN_OR_RETURN(kernel.shared_bytes,
                   fields.Int("shared_bytes", 0, kMaxBytes));
  return kernel;
}

absl::Status ReadLists(const JsonFields& fields, Module& module) {
  ASSIGN_OR_RETURN(const auto buffers, fields.Objects("buffers"));
  // Inputs, then outputs, then the rest: the order of the C interface.
  const auto group = [](BufferRole role) {
    return role == BufferRole::kInput ? 0 : role == BufferRole::kOutput ? 1 : 2;
  };
  for (const JsonFields& description : buffers) {
    ASSIGN_OR_RETURN(ModuleBuffer buffer,
                     ReadBuffer(description, module.workspace_bytes));
    if (!module.buffers.empty() &&
        group(buffer.role) < group(module.buffers.back().role)) {
      return description.Error("role",
                               "must be in the order of input, output, "
                               "others");
    }
    module.buffers.push_back(std::move(buffer));
  }
  ASSIGN_OR_RETURN(const auto kernels, fields.Objects("kernels"));
  for (const JsonFields& description : kernels) {
    ASSIGN_OR_RETURN(ModuleKernel kernel,
                     ReadKernel(description, module.buffers.size()));
    module.kernels.push_back(std::move(kernel));
  }
  ASSIGN_OR_RETURN(
      const std::vector<int64_t> sequence,
      fields.Ints("host_sequence", 0,
                  static_cast<int64_t>(module.kernels.size()) - 1));
  module.host_sequence = Narrowed<int>(sequence);
  return absl::OkStatus();
}

absl::StatusOr<Module> ReadDescription(std::string_view text) {
  const json description = json::parse(text.begin(), text.end(),
                                       /*cb=*/nullptr,
                                       /*allow_exceptions=*/false);
  if (description.is_discarded()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "module: at byte ", kHeaderBytes, ": the description is no JSON"));
  }
  ASSIGN_OR_RETURN(const JsonFields fields, JsonFields::Of(description, ""));
  Module module;
  ASSIGN_OR_RETURN(module.name, fields.String("name"));
  if (!IsCIdentifier(module.name)) {
    return fields.Error("name", "is no C identifier");
  }
  ASSIGN_OR_RETURN(module.workload, fields.String("workload"));
  ASSIGN_OR_RETURN(module.workload_key, fields.String("workload_key"));
  ASSIGN_OR_RETURN(module.target, fields.String("target"));
  ASSIGN_OR_RETURN(module.space, fields.String("space"));
  ASSIGN_OR_RETURN(module.space_version,
                   fields.Int("space_version", 0, kMaxInt));
  ASSIGN_OR_RETURN(module.schedule, fields.String("schedule"));
  ASSIGN_OR_RETURN(module.compiler_version, fields.String("compiler_version"));
  ASSIGN_OR_RETURN(module.threads, fields.Int("threads", 1, kMaxThreads));
  ASSIGN_OR_RETURN(module.workspace_bytes,
                   fields.Int("workspace_bytes", 0, kMaxBytes));
  RETURN_IF_ERROR(ReadLists(fields, module));
  return module;
}

}  // namespace

std::string SerializeModule(const Module& module) {
  // Text that is no UTF-8 cannot come from the parsers; were it there, it must
  // not throw.
  const std::string description =
      Describe(module).dump(-1, ' ', false, json::error_handler_t::replace);
  std::string bytes(kMagic);
  bytes.reserve(kHeaderBytes + description.size() + module.loadable.size() +
                module.relocatable.size());
  AppendLittleEndian(bytes, kFormatVersion);
  AppendLittleEndian<uint64_t>(bytes, description.size());
  AppendLittleEndian<uint64_t>(bytes, module.loadable.size());
  AppendLittleEndian<uint64_t>(bytes, module.relocatable.size());
  bytes += description;
  bytes += module.loadable;
  bytes += module.relocatable;
  return bytes;
}

absl::StatusOr<Module> DeserializeModule(std::string_view bytes) {
  const auto error = [](size_t offset, std::string_view message) {
    return absl::InvalidArgumentError(
        absl::StrCat("module: at byte ", offset, ": ", std::string(message)));
  };
  if (bytes.substr(0, kMagic.size()) != kMagic) {
    return error(0, "these bytes are no module");
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
  const uint64_t description = LittleEndian<uint64_t>(bytes, 8);
  const uint64_t loadable = LittleEndian<uint64_t>(bytes, 16);
  const uint64_t relocatable = LittleEndian<uint64_t>(bytes, 24);
  // One by one, so that no sum overflows.
  uint64_t rest = bytes.size() - kHeaderBytes;
  if (description > kMaxDescriptionBytes || description > rest) {
    return error(8, "the description is cut off or too long");
  }
  rest -= description;
  if (loadable > rest) return error(16, "the loadable code is cut off");
  rest -= loadable;
  if (relocatable > rest) return error(24, "the relocatable code is cut off");
  if (relocatable != rest) {
    return error(bytes.size() - (rest - relocatable),
                 "more bytes follow than the module has");
  }
  ASSIGN_OR_RETURN(Module module,
                   ReadDescription(bytes.substr(kHeaderBytes, description)));
  module.loadable = bytes.substr(kHeaderBytes + description, loadable);
  module.relocatable = bytes.substr(kHeaderBytes + description + loadable);
  return module;
}

}  // namespace regatta

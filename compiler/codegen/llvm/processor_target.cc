#include "compiler/codegen/llvm/processor_target.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "compiler/codegen/llvm/target_info.h"
#include "llvm/TargetParser/Host.h"

namespace regatta::cpu {
namespace {

using Fields = std::map<std::string, std::string>;

// "name : value" lines of the first processor, all names in lower case.
Fields ReadFields(const std::string& cpuinfo) {
  Fields fields;
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(cpuinfo, '\n'))) {
    const std::pair<std::string, std::string> field =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    fields.emplace(
        absl::AsciiStrToLower(absl::StripAsciiWhitespace(field.first)),
        std::string(absl::StripAsciiWhitespace(field.second)));
  }
  return fields;
}

int Number(const Fields& fields, const std::string& name) {
  const auto found = fields.find(name);
  int value = -1;
  if (found != fields.end() && absl::SimpleAtoi(found->second, &value)) {
    return value;
  }
  return -1;
}

std::set<std::string> Words(const Fields& fields, const std::string& name) {
  const auto found = fields.find(name);
  if (found == fields.end()) return {};
  return absl::StrSplit(found->second, ' ', absl::SkipEmpty());
}

// ---- x86

// A row of models of one family, as their manuals number them.
struct Model {
  int family;
  int first, last;
  const char* name;
};

constexpr Model kAmd[] = {
    {0x17, 0x00, 0x2f, "znver1"}, {0x17, 0x30, 0xff, "znver2"},
    {0x19, 0x00, 0x0f, "znver3"}, {0x19, 0x10, 0x1f, "znver4"},
    {0x19, 0x20, 0x5f, "znver3"}, {0x19, 0x60, 0x7f, "znver4"},
    {0x19, 0xa0, 0xaf, "znver4"}, {0x1a, 0x00, 0x77, "znver5"},
};

constexpr Model kIntel[] = {
    {6, 0x2a, 0x2a, "sandybridge"},    {6, 0x2d, 0x2d, "sandybridge"},
    {6, 0x3a, 0x3a, "ivybridge"},      {6, 0x3e, 0x3e, "ivybridge"},
    {6, 0x3c, 0x3c, "haswell"},        {6, 0x3f, 0x3f, "haswell"},
    {6, 0x45, 0x46, "haswell"},        {6, 0x3d, 0x3d, "broadwell"},
    {6, 0x47, 0x47, "broadwell"},      {6, 0x4f, 0x4f, "broadwell"},
    {6, 0x56, 0x56, "broadwell"},      {6, 0x4e, 0x4e, "skylake"},
    {6, 0x5e, 0x5e, "skylake"},        {6, 0x8e, 0x8e, "skylake"},
    {6, 0x9e, 0x9e, "skylake"},        {6, 0xa5, 0xa6, "skylake"},
    {6, 0x55, 0x55, "skylake-avx512"}, {6, 0x66, 0x66, "cannonlake"},
    {6, 0x7d, 0x7e, "icelake-client"}, {6, 0x6a, 0x6a, "icelake-server"},
    {6, 0x6c, 0x6c, "icelake-server"}, {6, 0x8c, 0x8d, "tigerlake"},
    {6, 0xa7, 0xa7, "rocketlake"},     {6, 0x97, 0x97, "alderlake"},
    {6, 0x9a, 0x9a, "alderlake"},      {6, 0xbe, 0xbe, "gracemont"},
    {6, 0xb7, 0xb7, "raptorlake"},     {6, 0xba, 0xba, "raptorlake"},
    {6, 0xbf, 0xbf, "raptorlake"},     {6, 0x8f, 0x8f, "sapphirerapids"},
    {6, 0xcf, 0xcf, "emeraldrapids"},  {6, 0xad, 0xad, "graniterapids"},
    {6, 0x5c, 0x5c, "goldmont"},       {6, 0x5f, 0x5f, "goldmont"},
    {6, 0x7a, 0x7a, "goldmont-plus"},  {6, 0x96, 0x96, "tremont"},
    {6, 0x9c, 0x9c, "tremont"},
};

// Linux's names of features in LLVM's spelling, but for dots.
std::set<std::string> X86Features(const Fields& fields) {
  static const auto& renamed = *new std::map<std::string, std::string>{
      {"pni", "sse3"}, {"abm", "lzcnt"}, {"bmi1", "bmi"}};
  std::set<std::string> features;
  for (std::string flag : Words(fields, "flags")) {
    std::erase(flag, '_');
    const auto other = renamed.find(flag);
    features.insert(other == renamed.end() ? flag : other->second);
  }
  return features;
}

std::string X86Level(const std::set<std::string>& features) {
  const auto has = [&](std::initializer_list<const char*> names) {
    return std::all_of(names.begin(), names.end(), [&](const char* name) {
      return features.count(name) > 0;
    });
  };
  if (!has({"sse3", "ssse3", "sse41", "sse42", "popcnt"})) return "x86-64";
  if (!has({"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"})) {
    return "x86-64-v2";
  }
  return has({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"})
             ? "x86-64-v4"
             : "x86-64-v3";
}

template <size_t kCount>
std::string NameIn(const Model (&models)[kCount], int family, int model) {
  for (const Model& row : models) {
    if (row.family == family && row.first <= model && model <= row.last) {
      return row.name;
    }
  }
  return "";
}

std::string X86Name(const Fields& fields,
                    const std::set<std::string>& features) {
  const int family = Number(fields, "cpu family");
  const int model = Number(fields, "model");
  const auto vendor = fields.find("vendor_id");
  if (vendor == fields.end()) return X86Level(features);
  std::string name;
  if (vendor->second == "AuthenticAMD") name = NameIn(kAmd, family, model);
  if (vendor->second == "GenuineIntel") name = NameIn(kIntel, family, model);
  if (name == "skylake-avx512" && features.count("avx512bf16") > 0) {
    name = "cooperlake";
  } else if (name == "skylake-avx512" && features.count("avx512vnni") > 0) {
    name = "cascadelake";
  }
  return name.empty() ? X86Level(features) : name;
}

// Of those that arithmetic may use.
const std::vector<std::string>& X86FeatureNames() {
  static const auto& names = *new std::vector<std::string>{"avx",
                                                           "avx2",
                                                           "avx512bf16",
                                                           "avx512bitalg",
                                                           "avx512bw",
                                                           "avx512cd",
                                                           "avx512dq",
                                                           "avx512f",
                                                           "avx512fp16",
                                                           "avx512ifma",
                                                           "avx512vbmi",
                                                           "avx512vbmi2",
                                                           "avx512vl",
                                                           "avx512vnni",
                                                           "avx512vp2intersect",
                                                           "avx512vpopcntdq",
                                                           "avxifma",
                                                           "avxneconvert",
                                                           "avxvnni",
                                                           "avxvnniint16",
                                                           "avxvnniint8",
                                                           "bmi",
                                                           "bmi2",
                                                           "f16c",
                                                           "fma",
                                                           "fma4",
                                                           "lzcnt",
                                                           "movbe",
                                                           "popcnt",
                                                           "sse",
                                                           "sse2",
                                                           "sse3",
                                                           "sse4.1",
                                                           "sse4.2",
                                                           "sse4a",
                                                           "ssse3",
                                                           "vaes",
                                                           "vpclmulqdq"};
  return names;
}

Target X86Target(const Fields& fields) {
  const std::set<std::string> features = X86Features(fields);
  Target target;
  target.triple = "x86_64-linux-gnu";
  target.mcpu = X86Name(fields, features);
  if (features.empty()) return target;  // not told of
  for (const std::string& name : X86FeatureNames()) {
    std::string plain = name;
    std::erase(plain, '.');
    if (features.count(plain) == 0) target.features.push_back("-" + name);
  }
  return target;
}

// ---- ARM

Target ArmTarget(const std::string& architecture, const std::string& cpuinfo,
                 const Fields& fields) {
  static const auto& names = *new std::map<std::string, std::string>{
      {"asimd", "neon"}, {"fp", "fp-armv8"}, {"sve", "sve"}, {"sve2", "sve2"}};
  Target target;
  target.triple = architecture + "-linux-gnu";
  target.mcpu = llvm::sys::detail::getHostCPUNameForARM(cpuinfo).str();
  const std::set<std::string> has = Words(fields, "features");
  for (const auto& [linux_name, name] : names) {
    if (!has.empty() && has.count(linux_name) == 0) {
      target.features.push_back("-" + name);
    }
  }
  return target;
}

}  // namespace

absl::StatusOr<Target> ProcessorTarget(const std::string& architecture,
                                       const std::string& cpuinfo) {
  const Fields fields = ReadFields(cpuinfo);
  Target target;
  if (architecture == "x86_64") {
    target = X86Target(fields);
  } else if (architecture == "aarch64" || architecture == "arm64") {
    target = ArmTarget("aarch64", cpuinfo, fields);
  } else {
    target.triple = architecture + "-linux-gnu";
  }
  // What the named processor has not anyway goes without saying.
  Target plain = target;
  plain.features.clear();
  ASSIGN_OR_RETURN(plain, CompleteCpuTarget(plain));
  std::erase_if(target.features, [&](const std::string& feature) {
    return !HasFeatures(plain, "+" + feature.substr(1));
  });
  std::sort(target.features.begin(), target.features.end());
  return CompleteCpuTarget(std::move(target));
}

}  // namespace regatta::cpu

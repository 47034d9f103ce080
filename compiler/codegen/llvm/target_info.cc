#include "compiler/codegen/llvm/target_info.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/codegen/llvm/product_instructions.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/ARMTargetParser.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

namespace regatta::cpu {
namespace {

void InitialiseLlvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmPrinters();
    llvm::InitializeAllAsmParsers();
  });
}

// The few names most like `name`, best first.
template <typename Table>
std::string NearNames(const std::string& name, const Table& table) {
  std::vector<std::pair<unsigned, std::string>> ranked;
  for (const auto& entry : table) {
    const std::string key = entry.Key;
    unsigned distance = llvm::StringRef(name).edit_distance(key);
    if (!name.empty() && key.compare(0, name.size(), name) == 0) distance = 1;
    ranked.emplace_back(distance, key);
  }
  std::sort(ranked.begin(), ranked.end());
  if (ranked.size() > 5) ranked.resize(5);
  return absl::StrJoin(ranked, ", ", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, entry.second);
  });
}

absl::StatusOr<const llvm::Target*> FindTarget(const std::string& triple) {
  InitialiseLlvm();
  if (triple.empty()) {
    return absl::InvalidArgumentError(
        "target: no triple; give one such as triple=x86_64-linux-gnu");
  }
  std::string error;
  const std::string llvm_triple = LlvmTriple(triple);
  const llvm::Target* target =
      llvm::TargetRegistry::lookupTarget(llvm_triple, error);
  if (target == nullptr) {
    const std::string architecture = triple.substr(0, triple.find('-'));
    struct Named {
      const char* Key;
    };
    std::vector<Named> known;
    for (const llvm::Target& t : llvm::TargetRegistry::targets()) {
      known.push_back({t.getName()});
    }
    return absl::InvalidArgumentError(
        absl::StrCat("target: LLVM has no architecture for triple '", triple,
                     "'; nearest: ", NearNames(architecture, known)));
  }
  if (!llvm::Triple(llvm_triple).isOSBinFormatELF() ||
      !target->hasTargetMachine()) {
    return absl::InvalidArgumentError(
        absl::StrCat("target: triple '", triple,
                     "' has no ELF objects; only such are made"));
  }
  return target;
}

// What the processor of an architecture is when none is named.
std::string BaselineCpu(const llvm::Triple& triple) {
  if (triple.getArch() == llvm::Triple::x86_64) return "x86-64";
  if (triple.getArch() == llvm::Triple::x86) return "pentium4";
  if (triple.getArch() == llvm::Triple::riscv64) return "generic-rv64";
  if (triple.getArch() == llvm::Triple::riscv32) return "generic-rv32";
  if (triple.getArch() == llvm::Triple::ppc64le) return "ppc64le";
  return "generic";
}

// What compilers assume of a processor beside what LLVM's table says.
std::vector<std::string> AssumedFeatures(const Target& target) {
  const llvm::Triple triple(LlvmTriple(target.triple));
  // Linux on RISC-V needs these; the generic processor has none.
  if (triple.isRISCV() && target.mcpu.compare(0, 8, "generic-") == 0) {
    return {"+m", "+a", "+f", "+d", "+c"};
  }
  std::vector<std::string> assumed;
  if (triple.isARM()) {
    // The floating-point unit that usually comes with the processor.
    std::vector<llvm::StringRef> features;
    llvm::ARM::getFPUFeatures(
        llvm::ARM::getDefaultFPU(target.mcpu,
                                 llvm::ARM::parseArch(triple.getArchName())),
        features);
    for (const llvm::StringRef feature : features) {
      assumed.push_back(feature.str());
    }
  }
  return assumed;
}

std::string FeatureString(const Target& target) {
  std::vector<std::string> features = AssumedFeatures(target);
  features.insert(features.end(), target.features.begin(),
                  target.features.end());
  return absl::StrJoin(features, ",");
}

std::unique_ptr<llvm::MCSubtargetInfo> SubtargetInfo(const llvm::Target& target,
                                                     const Target& of,
                                                     std::string cpu) {
  return std::unique_ptr<llvm::MCSubtargetInfo>(target.createMCSubtargetInfo(
      LlvmTriple(of.triple), cpu, FeatureString(of)));
}

absl::Status CheckFeatures(const llvm::MCSubtargetInfo& info,
                           const Target& target) {
  for (const std::string& feature : target.features) {
    const bool sign =
        !feature.empty() && (feature[0] == '+' || feature[0] == '-');
    const std::string name = sign ? feature.substr(1) : feature;
    const auto known = info.getAllProcessorFeatures();
    const bool found =
        std::any_of(known.begin(), known.end(),
                    [&](const auto& entry) { return name == entry.Key; });
    if (!sign || !found) {
      return absl::InvalidArgumentError(
          absl::StrCat("target: feature '", feature,
                       "' is not +name or -name of a feature of this "
                       "architecture; nearest: ",
                       NearNames(name, known)));
    }
  }
  return absl::OkStatus();
}

struct VectorUnit {
  int bits;
  int registers;
};

VectorUnit X86Vectors(const llvm::MCSubtargetInfo& info, bool is64) {
  // 512 bits wherever the processor has them: kernels that keep the whole
  // register file busy gain from 32 registers and half the instructions even
  // where a 512-bit operation takes two passes (Zen 4).
  if (info.checkFeatures("+avx512f") && info.checkFeatures("+evex512")) {
    return {512, 32};
  }
  if (info.checkFeatures("+avx512vl")) return {256, 32};
  const int registers = is64 ? 16 : 8;
  if (info.checkFeatures("+avx")) return {256, registers};
  if (info.checkFeatures("+sse")) return {128, registers};
  return {32, 8};
}

VectorUnit RiscvVectors(const llvm::MCSubtargetInfo& info) {
  for (const int bits : {512, 256, 128}) {
    if (info.checkFeatures(absl::StrCat("+zvl", bits, "b")) &&
        info.checkFeatures("+zve32f")) {
      return {bits, 32};
    }
  }
  return {32, 32};
}

VectorUnit Vectors(const llvm::MCSubtargetInfo& info) {
  const llvm::Triple& triple = info.getTargetTriple();
  const auto has = [&](const char* feature) {
    return info.checkFeatures(feature);
  };
  if (triple.isX86()) return X86Vectors(info, triple.isArch64Bit());
  if (triple.isRISCV()) return RiscvVectors(info);
  // Fixed vectors: SVE machines use their NEON half.
  if (triple.isAArch64())
    return has("+neon") ? VectorUnit{128, 32} : VectorUnit{32, 32};
  if (triple.isARM())
    return has("+neon") ? VectorUnit{128, 16} : VectorUnit{32, 16};
  if (triple.isPPC64())
    return has("+vsx") ? VectorUnit{128, 64} : VectorUnit{32, 32};
  if (triple.isSystemZ())
    return has("+vector") ? VectorUnit{128, 32} : VectorUnit{32, 16};
  if (triple.isLoongArch()) {
    if (has("+lasx")) return {256, 32};
    if (has("+lsx")) return {128, 32};
  }
  return {32, 16};
}

// The forms of Target::products that the emitter has an instruction for
// (product_instructions.cc), by what the processor has.
std::vector<std::string> Products(const llvm::MCSubtargetInfo& info) {
  std::vector<std::string> products;
  for (const ProductInstruction& instruction : ProductInstructions()) {
    if (instruction.OnArchitecture(info.getTargetTriple()) &&
        info.checkFeatures(instruction.features)) {
      products.push_back(instruction.form);
    }
  }
  std::sort(products.begin(), products.end());
  products.erase(std::unique(products.begin(), products.end()), products.end());
  return products;
}

absl::Status CheckProducts(const std::vector<std::string>& asked,
                           const std::vector<std::string>& available,
                           const Target& target) {
  for (const std::string& form : asked) {
    if (std::count(available.begin(), available.end(), form) > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "target: ", target.mcpu, " has no instruction for products=", form,
        "; it has ",
        available.empty() ? "none" : absl::StrJoin(available, "+")));
  }
  return absl::OkStatus();
}

// "x86_64-pc-linux-gnu" and "x86_64-unknown-linux-gnu" -> "x86_64-linux-gnu".
std::string ShortTriple(const std::string& triple) {
  const llvm::Triple parsed(LlvmTriple(triple));
  const llvm::StringRef vendor = parsed.getVendorName();
  std::vector<std::string> parts = {parsed.getArchName().str()};
  if (vendor != "unknown" && vendor != "pc" && !vendor.empty()) {
    parts.push_back(vendor.str());
  }
  if (!parsed.getOSName().empty()) parts.push_back(parsed.getOSName().str());
  if (!parsed.getEnvironmentName().empty()) {
    parts.push_back(parsed.getEnvironmentName().str());
  }
  return absl::StrJoin(parts, "-");
}

// Features that arithmetic may use, by the start of their names; others (pku,
// clwb, ...) would only make targets of equal machines look different.
bool CompilerEmits(const std::string& feature) {
  for (const char* prefix :
       {"avx", "sse", "fma", "f16c", "bmi", "lzcnt", "popcnt", "movbe", "neon",
        "sve", "fp", "fullfp16", "dotprod", "i8mm", "bf16", "v", "z"}) {
    if (feature.rfind(prefix, 0) == 0) return true;
  }
  return false;
}

}  // namespace

std::string LlvmTriple(const std::string& triple) {
  return llvm::Triple::normalize(triple);
}

absl::StatusOr<Target> CompleteCpuTarget(Target target) {
  ASSIGN_OR_RETURN(const llvm::Target* llvm_target, FindTarget(target.triple));
  target.kind = "cpu";
  target.triple = ShortTriple(target.triple);
  if (target.mcpu.empty()) {
    target.mcpu = BaselineCpu(llvm::Triple(LlvmTriple(target.triple)));
  }
  Target featureless = target;
  featureless.features.clear();
  const auto plain = SubtargetInfo(*llvm_target, featureless, "");
  if (plain == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "target: LLVM cannot describe triple '", target.triple, "'"));
  }
  if (target.mcpu == "native") {
    return absl::InvalidArgumentError(
        "target: mcpu=native is not one processor; name it");
  }
  if (!plain->isCPUStringValid(target.mcpu)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "target: unknown processor '", target.mcpu, "' of ", target.triple,
        "; nearest: ",
        NearNames(target.mcpu, plain->getAllProcessorDescriptions())));
  }
  RETURN_IF_ERROR(CheckFeatures(*plain, target));
  if (target.max_group != 0 || target.local_bytes != 0 ||
      target.subgroup != 0 || target.max_registers != 0 ||
      target.image_width != 0 || target.image_height != 0 ||
      target.driver != 0) {
    return absl::InvalidArgumentError(
        "target: max_group, local_bytes, subgroup, max_registers, image_width, "
        "image_height and driver are of boards that run groups of work-items; "
        "a "
        "processor has none");
  }
  const auto info = SubtargetInfo(*llvm_target, target, target.mcpu);
  const VectorUnit unit = Vectors(*info);
  if (target.vector_bits == 0) target.vector_bits = unit.bits;
  if (target.vector_registers == 0) target.vector_registers = unit.registers;
  const std::vector<std::string> products = Products(*info);
  RETURN_IF_ERROR(CheckProducts(target.products, products, target));
  if (target.products.empty()) target.products = products;
  if (target.vector_bits < 8 ||
      (target.vector_bits & (target.vector_bits - 1))) {
    return absl::InvalidArgumentError(
        absl::StrCat("target: vector_bits=", target.vector_bits,
                     " is not a power of two of at least 8"));
  }
  if (target.vector_registers < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("target: vector_registers=", target.vector_registers));
  }
  return target;
}

std::vector<std::string> CpuArchitectures() {
  std::vector<std::string> known;
  for (const char* name : {"x86_64", "aarch64", "arm", "riscv64", "riscv32",
                           "powerpc64le", "s390x", "loongarch64"}) {
    if (FindTarget(absl::StrCat(name, "-linux-gnu")).ok()) {
      known.push_back(name);
    }
  }
  return known;
}

absl::StatusOr<Target> HostCpuTarget() {
  Target target;
  target.triple = ShortTriple(llvm::sys::getProcessTriple());
  target.mcpu = llvm::sys::getHostCPUName().str();
  ASSIGN_OR_RETURN(const llvm::Target* llvm_target, FindTarget(target.triple));
  // A virtual machine may hide what the named processor has; emit nothing that
  // would trap.
  const auto info = SubtargetInfo(*llvm_target, target, target.mcpu);
  for (const auto& [name, present] : llvm::sys::getHostCPUFeatures()) {
    if (!present && CompilerEmits(name.str()) &&
        info->checkFeatures("+" + name.str())) {
      target.features.push_back("-" + name.str());
    }
  }
  std::sort(target.features.begin(), target.features.end());
  return CompleteCpuTarget(std::move(target));
}

Traits TraitsOf(const Target& target) {
  Traits traits;
  traits.vector_bytes = std::max(4, target.vector_bits / 8);
  const auto llvm_target = FindTarget(target.triple);
  if (!llvm_target.ok()) return traits;
  const auto info = SubtargetInfo(**llvm_target, target, target.mcpu);
  const auto has = [&](const char* feature) {
    return info->checkFeatures(feature);
  };
  const llvm::Triple& triple = info->getTargetTriple();
  if (triple.isX86()) {
    // Masked forms of every width come with VL; AVX has them for 4 and 8
    // bytes.
    traits.masked_memory = has("+avx2") || has("+avx512vl");
    traits.scales_by_powers = has("+avx512f") && has("+avx512vl");
    traits.masked_small_memory = has("+avx512bw") && has("+avx512vl");
    traits.native_f16 = has("+f16c");
    traits.aligned_streams = has("+sse2");
  } else if (triple.isRISCV()) {
    traits.masked_memory = has("+zve32f") && target.vector_bits > 32;
    traits.masked_small_memory = traits.masked_memory;
    traits.native_f16 = has("+zvfhmin") && has("+zfhmin");
  } else if (triple.isAArch64()) {
    traits.native_f16 = has("+fp-armv8");
    traits.widening_multiply = has("+neon");
  }
  return traits;
}

absl::StatusOr<llvm::TargetMachine*> MachineFor(const Target& target) {
  thread_local std::map<std::string, std::unique_ptr<llvm::TargetMachine>>
      machines;
  auto& machine = machines[target.ToString()];
  if (machine != nullptr) return machine.get();
  ASSIGN_OR_RETURN(const llvm::Target* llvm_target, FindTarget(target.triple));
  llvm::TargetOptions options;
  options.UseInitArray = true;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  const llvm::Triple triple(LlvmTriple(target.triple));
  if (triple.isRISCV()) {
    const auto info = SubtargetInfo(*llvm_target, target, target.mcpu);
    const std::string integers = triple.isArch64Bit() ? "lp64" : "ilp32";
    options.MCOptions.ABIName = info->checkFeatures("+d")   ? integers + "d"
                                : info->checkFeatures("+f") ? integers + "f"
                                                            : integers;
  }
  // O1's code generation: the same speed as O2 when the input is already
  // blocked and vectorised.
  machine.reset(llvm_target->createTargetMachine(
      triple.str(), target.mcpu, FeatureString(target), options,
      llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Less));
  if (machine == nullptr) {
    return absl::InternalError(
        absl::StrCat("LLVM makes no target machine for ", target.ToString()));
  }
  return machine.get();
}

bool HasFeatures(const Target& target, const std::string& features) {
  const auto machine = MachineFor(target);
  return machine.ok() &&
         (*machine)->getMCSubtargetInfo()->checkFeatures(features);
}

}  // namespace regatta::cpu

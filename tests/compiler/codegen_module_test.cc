// What a module is made of: symbols, needs, determinism, error codes, targets.
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <ostream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "compiler/codegen/code_generator.h"
#include "compiler/codegen/compiler_version.h"
#include "compiler/codegen/llvm/llvm_code_generator.h"
#include "compiler/module/c_interface.h"
#include "tests/compiler/codegen_support.h"
#include "tests/compiler/status_text.h"

namespace regatta {
namespace {

using loop::LoopKind;
using loop::Scope;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// y = exp(x) in `type` through a workspace of `scratch` elements, one kernel
// parallel when threads allow.
loop::Program Sample(DType type, int threads, int64_t scratch) {
  constexpr int64_t kN = 100;
  ProgramWriter w(threads);
  const int x = w.Add("x", Scope::kInput, type, kN);
  const int y = w.Add("y", Scope::kOutput, type, kN);
  const int t = w.Add("t", Scope::kWorkspace, type, scratch);
  const int i = w.Var(), j = w.Var();
  w.Kernel(loop::For(i, kN,
                     threads > 1 ? LoopKind::kParallel : LoopKind::kSerial,
                     loop::Store(t, V(i), w.Load(x, V(i)))));
  w.Kernel(loop::For(
      j, kN, LoopKind::kVector,
      loop::Store(y, V(j), loop::Unary(UnaryOp::kExp, w.Load(t, V(j))))));
  return w.program;
}

// The dynamic section of a 64-bit shared object of this machine's byte order.
struct Dynamic {
  std::vector<std::string> needed;
  std::vector<std::string> defined;
  std::vector<std::string> undefined;
};

Dynamic ReadDynamic(const std::string& so) {
  const auto at = [&](uint64_t offset) { return so.data() + offset; };
  Elf64_Ehdr header;
  std::memcpy(&header, at(0), sizeof header);
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  for (size_t i = 0; i < sections.size(); ++i) {
    std::memcpy(&sections[i], at(header.e_shoff + i * header.e_shentsize),
                sizeof(Elf64_Shdr));
  }
  Dynamic dynamic;
  for (const Elf64_Shdr& section : sections) {
    const bool symbols = section.sh_type == SHT_DYNSYM;
    if (!symbols && section.sh_type != SHT_DYNAMIC) continue;
    const char* names = at(sections[section.sh_link].sh_offset);
    for (uint64_t e = 0; e < section.sh_size; e += section.sh_entsize) {
      if (symbols) {
        Elf64_Sym symbol;
        std::memcpy(&symbol, at(section.sh_offset + e), sizeof symbol);
        if (symbol.st_name == 0) continue;
        (symbol.st_shndx == SHN_UNDEF ? dynamic.undefined : dynamic.defined)
            .push_back(names + symbol.st_name);
      } else {
        Elf64_Dyn entry;
        std::memcpy(&entry, at(section.sh_offset + e), sizeof entry);
        if (entry.d_tag == DT_NEEDED) {
          dynamic.needed.push_back(names + entry.d_un.d_val);
        }
      }
    }
  }
  return dynamic;
}

TEST(ModuleCode, ExportsItsFourNamesAndNothingElse) {
  for (const int threads : {1, 2}) {
    const Module module =
        Build(Sample(DType::kF32, threads, 100), HostForTests(), "my_k");
    EXPECT_THAT(ReadDynamic(module.loadable).defined,
                UnorderedElementsAre("my_k", "my_k_ws", "my_k_call",
                                     "my_k_workspace_bytes"));
  }
}

TEST(ModuleCode, NeedsLibcAndLibmOnlyAndOnlyWhenItCallsThem) {
  const Dynamic plain =
      ReadDynamic(Build(Sample(DType::kF32, 1, 100), HostForTests()).loadable);
  EXPECT_THAT(plain.needed, IsEmpty());
  EXPECT_THAT(plain.undefined, IsEmpty());
  const Dynamic libm =
      ReadDynamic(Build(Sample(DType::kF64, 1, 100), HostForTests()).loadable);
  EXPECT_THAT(libm.needed, ElementsAre("libm.so.6"));
  EXPECT_THAT(libm.undefined, ElementsAre("exp"));
  const Dynamic libc = ReadDynamic(
      Build(Sample(DType::kF32, 2, 100000), HostForTests()).loadable);
  EXPECT_THAT(libc.needed, ElementsAre("libc.so.6"));
  EXPECT_THAT(libc.undefined, testing::Contains("pthread_create"));
}

TEST(ModuleCode, DescribesBuffersKernelsAndWorkspace) {
  const Module module =
      Build(Sample(DType::kF32, 3, 128), HostForTests(), "my_k");
  ASSERT_EQ(module.buffers.size(), 3u);
  EXPECT_EQ(module.buffers[0].role, BufferRole::kInput);
  EXPECT_EQ(module.buffers[0].bytes, 400);
  EXPECT_EQ(module.buffers[1].role, BufferRole::kOutput);
  EXPECT_EQ(module.buffers[2].role, BufferRole::kWorkspace);
  EXPECT_EQ(module.workspace_bytes, 512);
  ASSERT_EQ(module.kernels.size(), 2u);
  EXPECT_THAT(module.kernels[0].arguments, ElementsAre(0, 2));
  EXPECT_THAT(module.kernels[0].grid, ElementsAre(100));
  EXPECT_THAT(module.kernels[1].arguments, ElementsAre(1, 2));
  EXPECT_THAT(module.kernels[1].grid, ElementsAre(1));
  EXPECT_THAT(module.host_sequence, ElementsAre(0, 1));
  EXPECT_EQ(module.threads, 3);
  EXPECT_EQ(module.target, HostForTests().ToString());
  EXPECT_THAT(module.compiler_version,
              testing::MatchesRegex("[0-9a-f]{16}/LLVM 19\\.1\\.[0-9]+"));
  const LoadedModule loaded(module);
  EXPECT_EQ(*static_cast<const size_t*>(loaded.Symbol("my_k_workspace_bytes")),
            512u);
}

// Own workspace: none, on the stack, from the heap.
TEST(ModuleCode, TheFourWaysToCallAgree) {
  for (const int64_t scratch : {100, 1000, 100000}) {
    const LoadedModule module(
        Build(Sample(DType::kF32, 1, scratch), HostForTests()));
    std::vector<float> x(100), own(100), given(100), uniform(100);
    std::iota(x.begin(), x.end(), -50.0f);
    const auto k =
        reinterpret_cast<int (*)(const void*, void*)>(module.Symbol("k"));
    const auto k_ws = reinterpret_cast<int (*)(const void*, void*, void*)>(
        module.Symbol("k_ws"));
    void* workspace = std::aligned_alloc(64, module.workspace_bytes());
    EXPECT_EQ(k(x.data(), own.data()), kCallOk);
    EXPECT_EQ(k_ws(x.data(), given.data(), workspace), kCallOk);
    std::free(workspace);
    EXPECT_EQ(module.Call({x.data(), uniform.data()}), kCallOk);
    for (int i = 0; i < 100; ++i) {
      EXPECT_NEAR(own[i], std::exp(x[i]), 1e-6 * std::exp(x[i]));
    }
    EXPECT_EQ(own, given);
    EXPECT_EQ(own, uniform);
  }
}

TEST(ModuleCode, BadPointersAreRefusedAndNothingIsWritten) {
  const LoadedModule module(Build(Sample(DType::kF32, 1, 100), HostForTests()));
  std::vector<float> x(101, 1), y(101, -1);
  alignas(64) char workspace[512];
  const auto k_ws = reinterpret_cast<int (*)(const void*, void*, void*)>(
      module.Symbol("k_ws"));
  const auto k =
      reinterpret_cast<int (*)(const void*, void*)>(module.Symbol("k"));
  char* odd = reinterpret_cast<char*>(x.data()) + 2;
  EXPECT_EQ(k(nullptr, y.data()), kCallNullArgument);
  EXPECT_EQ(k(x.data(), nullptr), kCallNullArgument);
  EXPECT_EQ(k_ws(x.data(), y.data(), nullptr), kCallNullArgument);
  EXPECT_EQ(k(odd, y.data()), kCallMisaligned);
  EXPECT_EQ(k_ws(x.data(), y.data(), workspace + 8), kCallMisaligned);
  const auto call =
      reinterpret_cast<int (*)(void* const*, void*)>(module.Symbol("k_call"));
  EXPECT_EQ(call(nullptr, workspace), kCallNullArgument);
  void* tensors[] = {x.data(), nullptr};
  EXPECT_EQ(call(tensors, workspace), kCallNullArgument);
  for (const float value : y) EXPECT_EQ(value, -1);
}

TEST(ModuleCode, EqualInputsGiveEqualBytes) {
  for (const int threads : {1, 4}) {
    const loop::Program program = Sample(DType::kF16, threads, 100000);
    const Module first = Build(program, HostForTests());
    const Module second = Build(program, HostForTests());
    EXPECT_EQ(first.loadable, second.loadable);
    EXPECT_EQ(first.relocatable, second.relocatable);
    EXPECT_NE(first.BinaryHash(),
              Build(Sample(DType::kF32, threads, 100000), HostForTests())
                  .BinaryHash());
  }
}

TEST(ModuleCode, ThreadsThatCompileAtOnceGetTheSameBytes) {
  const loop::Program program = Sample(DType::kF64, 2, 100000);
  const std::string expected = Build(program, HostForTests()).loadable;
  std::array<int, 3> differ{};
  std::vector<std::thread> threads;
  for (int& count : differ) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        count += Build(program, HostForTests()).loadable != expected;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(differ, testing::Each(0));
}

// Links that refer to the global offset table and links that do not, in turn,
// for several formats: what one link leaves behind must not reach the next.
TEST(ModuleCode, LinksOfDifferentTargetsMayAlternate) {
  std::vector<std::string> first;
  for (int round = 0; round < 4; ++round) {
    size_t i = 0;
    for (const char* triple : {"x86_64-linux-gnu", "powerpc64le-linux-gnu",
                               "aarch64-linux-gnu", "riscv64-linux-gnu"}) {
      Target target;
      target.triple = triple;
      const auto complete = FindCodeGenerator("cpu")->Complete(target);
      ASSERT_STATUS_OK(complete);
      for (const int threads : {1, 2}) {
        const std::string so =
            Build(Sample(DType::kF64, threads, 100000), *complete).loadable;
        if (round == 0) first.push_back(so);
        EXPECT_EQ(so, first[i++]) << triple << " in round " << round;
      }
    }
  }
}

// Also what another process is asked for, below.
TEST(ModuleCode, HasAHash) {
  const std::string hash =
      Build(Sample(DType::kF32, 4, 100000), HostForTests()).BinaryHash();
  EXPECT_EQ(hash.size(), 64u);
  std::printf("module hash %s\n", hash.c_str());
}

TEST(ModuleCode, AnotherProcessMakesTheSameBytes) {
  const std::string command = "/proc/" + std::to_string(getpid()) +
                              "/exe --gtest_filter=ModuleCode.HasAHash 2>&1";
  FILE* child = popen(command.c_str(), "r");
  ASSERT_NE(child, nullptr);
  std::string output;
  std::array<char, 4096> buffer;
  while (const size_t n = fread(buffer.data(), 1, buffer.size(), child)) {
    output.append(buffer.data(), n);
  }
  EXPECT_EQ(pclose(child), 0) << output;
  EXPECT_THAT(
      output,
      HasSubstr(
          "module hash " +
          Build(Sample(DType::kF32, 4, 100000), HostForTests()).BinaryHash()));
}

TEST(ModuleCode, LinksIntoACProgramAsLibraryAndAsObject) {
  const std::filesystem::path dir =
      std::filesystem::path(testing::TempDir()) /
      ("regatta-codegen-" + std::to_string(getpid()));
  std::filesystem::create_directories(dir);
  const Module module =
      Build(Sample(DType::kF64, 2, 100000), HostForTests(), "exp_of");
  std::ofstream(dir / "libk.so", std::ios::binary) << module.loadable;
  std::ofstream(dir / "k.o", std::ios::binary) << module.relocatable;
  std::ofstream(dir / "t.c") << R"(
int exp_of(const double *x, double *y);
int main(void) {
  static double x[100], y[100];
  for (int i = 0; i < 100; ++i) x[i] = i / 50.0;
  if (exp_of(x, y) != 0) return 1;
  return y[0] == 1.0 && y[50] > 2.7182 && y[50] < 2.7183 ? 0 : 2;
}
)";
  const std::string cd = "cd '" + dir.string() + "' && ";
  const std::string cc = std::string(REGATTA_C_COMPILER) + " t.c ";
  EXPECT_EQ(std::system((cd + cc + "./libk.so -lm -o a && ./a").c_str()), 0);
  EXPECT_EQ(std::system((cd + cc + "k.o -lm -o b && ./b").c_str()), 0);
  std::filesystem::remove_all(dir);
}

struct ForeignTarget {
  const char* triple;
  const char* mcpu;
  int machine;  // in ELF
  int vector_bits;
  int vector_registers;
};

void PrintTo(const ForeignTarget& target, std::ostream* out) {
  *out << target.triple << " " << target.mcpu;
}

// Programs without code generators name the same tools.
TEST(CodeGeneratorList, HasTheToolOfEveryGenerator) {
  for (const CodeGenerator* generator : CodeGenerators()) {
    const std::string kind(generator->target_kind());
    EXPECT_EQ(CompilerVersionOfKind(kind),
              CompilerVersionOf(generator->tool_version({.kind = kind})));
  }
  EXPECT_EQ(CompilerVersionOfKind("abacus"), "");
}

class ForeignTargets : public testing::TestWithParam<ForeignTarget> {};
INSTANTIATE_TEST_SUITE_P(
    ModuleCode, ForeignTargets,
    testing::Values(
        ForeignTarget{"aarch64-linux-gnu", "cortex-a76", EM_AARCH64, 128, 32},
        ForeignTarget{"aarch64-linux-gnu", "neoverse-v1", EM_AARCH64, 128, 32},
        ForeignTarget{"riscv64-linux-gnu", "", EM_RISCV, 32, 32},
        ForeignTarget{"riscv64-linux-gnu", "sifive-x280", EM_RISCV, 512, 32},
        ForeignTarget{"armv7-linux-gnueabihf", "cortex-a9", EM_ARM, 128, 16},
        ForeignTarget{"powerpc64le-linux-gnu", "pwr9", EM_PPC64, 128, 64},
        ForeignTarget{"x86_64-linux-gnu", "znver5", EM_X86_64, 512, 32},
        ForeignTarget{"x86_64-linux-gnu", "skylake-avx512", EM_X86_64, 512, 32},
        ForeignTarget{"x86_64-linux-gnu", "haswell", EM_X86_64, 256, 16},
        ForeignTarget{"x86_64-linux-musl", "x86-64", EM_X86_64, 128, 16}),
    [](const auto& info) {
      std::string name = std::string(info.param.triple) + "_" + info.param.mcpu;
      for (char& c : name) {
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
      }
      return name;
    });

TEST_P(ForeignTargets, GetObjectsOfTheirOwn) {
  Target target;
  target.triple = GetParam().triple;
  target.mcpu = GetParam().mcpu;
  const auto complete = FindCodeGenerator("cpu")->Complete(target);
  ASSERT_STATUS_OK(complete);
  EXPECT_EQ(complete->vector_bits, GetParam().vector_bits);
  EXPECT_EQ(complete->vector_registers, GetParam().vector_registers);
  EXPECT_FALSE(complete->mcpu.empty());
  // Completing is idempotent, and the text says all.
  EXPECT_EQ(*FindCodeGenerator("cpu")->Complete(*complete), *complete);
  EXPECT_EQ(*ParseTarget(complete->ToString()), *complete);
  for (const DType type :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
    ProgramWriter w(2);
    const int x = w.Add("x", Scope::kInput, type, 4 * 37);
    const int y = w.Add("y", Scope::kOutput, type, 4 * 37);
    const int i = w.Var(), j = w.Var();
    const DType wide = type == DType::kF64 ? type : DType::kF32;
    const auto value = loop::Cast(w.Load(x, V(i, 37) + V(j)), wide);
    w.Kernel(loop::For(
        i, 4, LoopKind::kParallel,
        loop::For(j, 37, LoopKind::kVector,
                  loop::Store(y, V(i, 37) + V(j),
                              loop::Cast(loop::Unary(UnaryOp::kSigmoid, value),
                                         type)))));
    const Module module = Build(w.program, *complete);
    for (const std::string& file : {module.loadable, module.relocatable}) {
      ASSERT_GT(file.size(), sizeof(Elf32_Ehdr));
      uint16_t machine;
      std::memcpy(&machine, file.data() + offsetof(Elf64_Ehdr, e_machine), 2);
      EXPECT_EQ(machine, GetParam().machine);
    }
  }
}

struct BadTarget {
  const char* name;
  Target target;
  std::vector<const char*> says;
};

Target TargetOf(const std::string& triple, const std::string& mcpu,
                std::vector<std::string> features = {}) {
  Target target;
  target.triple = triple;
  target.mcpu = mcpu;
  target.features = std::move(features);
  return target;
}

TEST(Targets, UnknownOnesAreRefusedWithNearNames) {
  const BadTarget bad[] = {
      {"cpu",
       TargetOf("x86_64-linux-gnu", "zenver4"),
       {"unknown processor 'zenver4'", "znver4"}},
      {"cpu of another",
       TargetOf("aarch64-linux-gnu", "znver4"),
       {"unknown processor 'znver4' of aarch64-linux-gnu"}},
      {"triple",
       TargetOf("arch64-linux-gnu", ""),
       {"no architecture", "arch64-linux-gnu", "aarch64"}},
      {"no triple", TargetOf("", "znver4"), {"no triple"}},
      {"format", TargetOf("x86_64-apple-darwin", ""), {"no ELF"}},
      {"feature",
       TargetOf("x86_64-linux-gnu", "znver4", {"+avx512q"}),
       {"'+avx512q'", "avx512dq"}},
      {"feature's sign",
       TargetOf("x86_64-linux-gnu", "znver4", {"avx2"}),
       {"'avx2' is not +name or -name"}},
      {"limits of groups",
       {.triple = "x86_64-linux-gnu", .mcpu = "znver4", .max_group = 256},
       {"max_group", "a processor has none"}},
  };
  for (const BadTarget& b : bad) {
    const auto result = FindCodeGenerator("cpu")->Complete(b.target);
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument)
        << b.name;
    for (const char* text : b.says) {
      EXPECT_THAT(StatusText(result), HasSubstr(text)) << b.name;
    }
  }
}

TEST(Targets, TriplesAreWrittenTheShortWay) {
  for (const char* triple : {"x86_64-linux-gnu", "x86_64-pc-linux-gnu",
                             "x86_64-unknown-linux-gnu"}) {
    const auto complete =
        FindCodeGenerator("cpu")->Complete(TargetOf(triple, ""));
    ASSERT_STATUS_OK(complete);
    EXPECT_EQ(complete->triple, "x86_64-linux-gnu");
    EXPECT_EQ(complete->mcpu, "x86-64");
  }
}

TEST(Targets, TheHostIsComplete) {
  const Target& host = HostForTests();
  EXPECT_EQ(host.kind, "cpu");
  EXPECT_FALSE(host.mcpu.empty());
  EXPECT_GT(host.vector_registers, 0);
  EXPECT_EQ(*FindCodeGenerator("cpu")->Complete(host), host);
}

TEST(Targets, FeaturesChangeTheVectorUnit) {
  const auto narrow = FindCodeGenerator("cpu")->Complete(
      TargetOf("x86_64-linux-gnu", "znver4", {"-avx512f"}));
  ASSERT_STATUS_OK(narrow);
  EXPECT_EQ(narrow->vector_bits, 256);
  EXPECT_EQ(narrow->vector_registers, 16);
}

TEST(CodeGenerators, AreFoundByKind) {
  EXPECT_EQ(FindCodeGenerator("cpu")->target_kind(), "cpu");
  EXPECT_EQ(FindCodeGenerator("abacus"), nullptr);
}

// 28 accumulators, two vectors of B and a broadcast fill 31 of 32 registers.
TEST(Assembly, ATileOf14By2VectorsOf512BitsStaysInRegisters) {
  const auto target = FindCodeGenerator("cpu")->Complete(
      TargetOf("x86_64-linux-gnu", "znver4"));
  ASSERT_STATUS_OK(target);
  constexpr int64_t kM = 14, kN = 32, kK = 200;
  ProgramWriter w;
  const int a = w.Add("a", Scope::kInput, DType::kF32, kM * kK);
  const int b = w.Add("b", Scope::kInput, DType::kF32, kK * kN);
  const int c = w.Add("c", Scope::kOutput, DType::kF32, kM * kN);
  const int acc = w.Add("acc", Scope::kRegister, DType::kF32, kM * kN);
  const auto tile = [&](auto body) {
    const int i = w.Var(), j = w.Var();
    return loop::For(i, kM, LoopKind::kUnrolled,
                     loop::For(j, kN, LoopKind::kVector, body(V(i), V(j))));
  };
  const int p = w.Var();
  w.Kernel(loop::Block(
      {tile([&](const Affine& i, const Affine& j) {
         return loop::Store(acc, i * kN + j, loop::Const(0));
       }),
       loop::For(p, kK, LoopKind::kSerial,
                 tile([&](const Affine& i, const Affine& j) {
                   return loop::Store(
                       acc, i * kN + j,
                       loop::Binary(BinaryOp::kMul, w.Load(a, i * kK + V(p)),
                                    w.Load(b, V(p, kN) + j)),
                       Reduction::kSum);
                 })),
       tile([&](const Affine& i, const Affine& j) {
         return loop::Store(c, i * kN + j, w.Load(acc, i * kN + j));
       })}));
  const auto lowered = LowerProgram(w.program);
  ASSERT_STATUS_OK(lowered);
  const auto assembly = EmitAssembly(*lowered, *target, "k");
  ASSERT_STATUS_OK(assembly);
  EXPECT_THAT(*assembly, testing::Not(HasSubstr("(%rsp), %zmm")));
  size_t multiplies = 0;
  for (size_t at = assembly->find("vfmadd"); at != std::string::npos;
       at = assembly->find("vfmadd", at + 1)) {
    ++multiplies;
  }
  EXPECT_EQ(multiplies, 28u);
}

}  // namespace
}  // namespace regatta

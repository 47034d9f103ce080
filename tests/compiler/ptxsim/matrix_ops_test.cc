// ldmatrix and mma against plain matrix products. Fragments are laid out here
// by the tables of the PTX manual (element i of lane l), not by the formula
// that the simulator uses.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "compiler/module/half.h"
#include "tests/compiler/ptxsim/snippet.h"

namespace regatta::ptxsim {
namespace {

struct Place {
  int row, column;
};
using Layout = std::function<Place(int lane, int element)>;

struct MmaCase {
  const char* name;  // modifiers after mma.sync.aligned
  int m, k;
  int bits;  // of an input element
  const char* input;
  const char* result;
  Layout a, b;  // b: row is k, column is n
};

// The manual's formulas for each shape, groupID = lane / 4 and t = lane % 4.
const MmaCase kCases[] = {
    {"m16n8k16.row.col.f32.f16.f16.f32", 16, 16, 16, "f16", "f32",
     [](int l, int i) {
       return Place{(i < 2 || (i >= 4 && i < 6)) ? l / 4 : l / 4 + 8,
                    i < 4 ? (l % 4) * 2 + (i & 1) : (l % 4) * 2 + (i & 1) + 8};
     },
     [](int l, int i) {
       return Place{i < 2 ? (l % 4) * 2 + (i & 1) : (l % 4) * 2 + (i & 1) + 8,
                    l / 4};
     }},
    {"m16n8k16.row.col.f16.f16.f16.f16", 16, 16, 16, "f16", "f16",
     [](int l, int i) {
       return Place{(i < 2 || (i >= 4 && i < 6)) ? l / 4 : l / 4 + 8,
                    i < 4 ? (l % 4) * 2 + (i & 1) : (l % 4) * 2 + (i & 1) + 8};
     },
     [](int l, int i) {
       return Place{i < 2 ? (l % 4) * 2 + (i & 1) : (l % 4) * 2 + (i & 1) + 8,
                    l / 4};
     }},
    {"m16n8k16.row.col.f32.bf16.bf16.f32", 16, 16, 16, "bf16", "f32",
     [](int l, int i) {
       return Place{(i < 2 || (i >= 4 && i < 6)) ? l / 4 : l / 4 + 8,
                    i < 4 ? (l % 4) * 2 + (i & 1) : (l % 4) * 2 + (i & 1) + 8};
     },
     [](int l, int i) {
       return Place{i < 2 ? (l % 4) * 2 + (i & 1) : (l % 4) * 2 + (i & 1) + 8,
                    l / 4};
     }},
    {"m16n8k8.row.col.f32.f16.f16.f32", 16, 8, 16, "f16", "f32",
     [](int l, int i) {
       return Place{i < 2 ? l / 4 : l / 4 + 8, (l % 4) * 2 + (i & 1)};
     },
     [](int l, int i) {
       return Place{(l % 4) * 2 + i, l / 4};
     }},
    {"m16n8k8.row.col.f16.f16.f16.f16", 16, 8, 16, "f16", "f16",
     [](int l, int i) {
       return Place{i < 2 ? l / 4 : l / 4 + 8, (l % 4) * 2 + (i & 1)};
     },
     [](int l, int i) {
       return Place{(l % 4) * 2 + i, l / 4};
     }},
    {"m16n8k8.row.col.f32.bf16.bf16.f32", 16, 8, 16, "bf16", "f32",
     [](int l, int i) {
       return Place{i < 2 ? l / 4 : l / 4 + 8, (l % 4) * 2 + (i & 1)};
     },
     [](int l, int i) {
       return Place{(l % 4) * 2 + i, l / 4};
     }},
    {"m16n8k8.row.col.f32.tf32.tf32.f32", 16, 8, 32, "tf32", "f32",
     [](int l, int i) {
       return Place{i % 2 == 0 ? l / 4 : l / 4 + 8, i < 2 ? l % 4 : l % 4 + 4};
     },
     [](int l, int i) {
       return Place{i == 0 ? l % 4 : l % 4 + 4, l / 4};
     }},
    {"m16n8k4.row.col.f32.tf32.tf32.f32", 16, 4, 32, "tf32", "f32",
     [](int l, int i) {
       return Place{i == 0 ? l / 4 : l / 4 + 8, l % 4};
     },
     [](int l, int) {
       return Place{l % 4, l / 4};
     }},
    {"m16n8k32.row.col.s32.s8.s8.s32", 16, 32, 8, "s8", "s32",
     [](int l, int i) {
       return Place{i < 4 || (i >= 8 && i < 12) ? l / 4 : l / 4 + 8,
                    i < 8 ? (l % 4) * 4 + (i & 3) : (l % 4) * 4 + (i & 3) + 16};
     },
     [](int l, int i) {
       return Place{i < 4 ? (l % 4) * 4 + (i & 3) : (l % 4) * 4 + (i & 3) + 16,
                    l / 4};
     }},
    {"m16n8k32.row.col.s32.u8.u8.s32", 16, 32, 8, "u8", "s32",
     [](int l, int i) {
       return Place{i < 4 || (i >= 8 && i < 12) ? l / 4 : l / 4 + 8,
                    i < 8 ? (l % 4) * 4 + (i & 3) : (l % 4) * 4 + (i & 3) + 16};
     },
     [](int l, int i) {
       return Place{i < 4 ? (l % 4) * 4 + (i & 3) : (l % 4) * 4 + (i & 3) + 16,
                    l / 4};
     }},
    {"m16n8k16.row.col.satfinite.s32.s8.s8.s32", 16, 16, 8, "s8", "s32",
     [](int l, int i) {
       return Place{i < 4 ? l / 4 : l / 4 + 8, (l % 4) * 4 + (i & 3)};
     },
     [](int l, int i) {
       return Place{(l % 4) * 4 + i, l / 4};
     }},
    {"m8n8k16.row.col.s32.s8.s8.s32", 8, 16, 8, "s8", "s32",
     [](int l, int i) {
       return Place{l / 4, (l % 4) * 4 + i};
     },
     [](int l, int i) {
       return Place{(l % 4) * 4 + i, l / 4};
     }},
};

// C and D have one layout in all of these shapes.
Place ResultPlace(int l, int i) {
  return {i < 2 ? l / 4 : l / 4 + 8, (l % 4) * 2 + (i & 1)};
}

uint32_t Encode(int value, const std::string& type) {
  if (type == "f16") return DoubleToF16Bits(value);
  if (type == "bf16") return DoubleToBF16Bits(value);
  if (type == "s8" || type == "u8") return static_cast<uint8_t>(value);
  if (type == "s32") return static_cast<uint32_t>(value);
  return static_cast<uint32_t>(Bits(static_cast<float>(value)));
}

double Decode(uint32_t bits, const std::string& type) {
  if (type == "f16") return F16BitsToDouble(static_cast<uint16_t>(bits));
  if (type == "s32") return static_cast<int32_t>(bits);
  return AsFloat(bits);
}

// A kernel that loads `words` words a lane from a, runs mma, stores `results`.
std::string MmaKernel(const MmaCase& c, int a_words, int b_words, int words) {
  const auto list = [](int first, int count) {
    std::string text = "{";
    for (int i = 0; i < count; ++i) {
      absl::StrAppend(&text, i > 0 ? "," : "", "%r", first + i);
    }
    return text + "}";
  };
  std::string text = absl::StrCat(
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry mma(.param .u64 pi, .param .u64 po) {\n"
      ".reg .b32 %r<64>; .reg .b64 %d<8>;\n"
      "mov.u32 %r0, %tid.x; mul.wide.u32 %d0, %r0, 64;\n"
      "ld.param.u64 %d1, [pi]; add.s64 %d1, %d1, %d0;\n"
      "ld.param.u64 %d2, [po]; add.s64 %d2, %d2, %d0;\n");
  for (int i = 0; i < a_words + b_words + words; ++i) {
    absl::StrAppend(&text, "ld.global.b32 %r", 10 + i, ", [%d1+", 4 * i,
                    "];\n");
  }
  absl::StrAppend(&text, "mma.sync.aligned.", c.name, " ", list(40, words), ",",
                  list(10, a_words), ",", list(10 + a_words, b_words), ",",
                  list(10 + a_words + b_words, words), ";\n");
  for (int i = 0; i < words; ++i) {
    absl::StrAppend(&text, "st.global.b32 [%d2+", 4 * i, "], %r", 40 + i,
                    ";\n");
  }
  return text + "ret;\n}\n";
}

TEST(PtxMatrixTest, MmaIsAMatrixProduct) {
  Random random(1);
  for (const MmaCase& c : kCases) {
    SCOPED_TRACE(c.name);
    const std::string input_type = c.input, result_type = c.result;
    const int n = 8;
    const int per_word = 32 / c.bits;
    const int a_words = c.m * c.k / 32 / per_word;
    const int b_words = n * c.k / 32 / per_word;
    const int c_elements = c.m * n / 32;
    const int c_per_word = result_type == "f16" ? 2 : 1;
    // Small integers: exact in every type.
    const int low = input_type == "u8" ? 0 : -4;
    std::vector<std::vector<int>> a(c.m, std::vector<int>(c.k));
    std::vector<std::vector<int>> b(c.k, std::vector<int>(n));
    std::vector<std::vector<int>> d(c.m, std::vector<int>(n));
    for (auto& row : a)
      for (int& x : row) x = low + int(random.Below(9));
    for (auto& row : b)
      for (int& x : row) x = low + int(random.Below(9));
    for (auto& row : d)
      for (int& x : row) x = int(random.Below(201)) - 100;
    std::vector<uint32_t> memory(32 * 16);
    for (int lane = 0; lane < 32; ++lane) {
      uint32_t* words = &memory[16 * lane];
      for (int i = 0; i < a_words * per_word; ++i) {
        const Place p = c.a(lane, i);
        words[i / per_word] |= Encode(a[p.row][p.column], input_type)
                               << (c.bits * (i % per_word));
      }
      for (int i = 0; i < b_words * per_word; ++i) {
        const Place p = c.b(lane, i);
        words[a_words + i / per_word] |= Encode(b[p.row][p.column], input_type)
                                         << (c.bits * (i % per_word));
      }
      for (int i = 0; i < c_elements; ++i) {
        const Place p = ResultPlace(lane, i);
        words[a_words + b_words + i / c_per_word] |=
            Encode(d[p.row][p.column], result_type) << (16 * (i % c_per_word));
      }
    }
    const auto module = PtxModule::Parse(
        MmaKernel(c, a_words, b_words, c_elements / c_per_word));
    ASSERT_TRUE(module.ok()) << module.status();
    DeviceMemory device;
    const uint64_t in = device.Allocate(memory.size() * 4).value();
    const uint64_t out = device.Allocate(memory.size() * 4).value();
    ASSERT_TRUE(device.WriteArray<uint32_t>(in, memory).ok());
    const auto report = RunKernel(
        *module, {.entry = "mma", .group = {32, 1, 1}, .arguments = {in, out}},
        device);
    ASSERT_TRUE(report.ok()) << report.status();
    ASSERT_FALSE(report->fault.has_value()) << report->fault->ToString();
    const auto result = device.ReadArray<uint32_t>(out, memory.size()).value();
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < c_elements; ++i) {
        const Place p = ResultPlace(lane, i);
        int want = d[p.row][p.column];
        for (int k = 0; k < c.k; ++k) want += a[p.row][k] * b[k][p.column];
        const uint32_t word = result[16 * lane + i / c_per_word];
        EXPECT_EQ(Decode(word >> (16 * (i % c_per_word)), result_type), want);
      }
    }
    const Counters& counters = report->counters;
    EXPECT_EQ(counters.Of(InstructionClass::kMatrix), 1u);
    EXPECT_EQ(counters.matrix_macs_f16 + counters.matrix_macs_int8 +
                  counters.matrix_macs_tf32,
              static_cast<uint64_t>(c.m * n * c.k));
  }
}

TEST(PtxMatrixTest, LoadMatrixSpreadsRows) {
  // Four tiles of 8 x 8, element e of row r of tile t is 64 t + 8 r + e; rows
  // lie 32 bytes apart.
  for (const bool transposed : {false, true}) {
    const auto out = RunSnippet(
        SnippetKernel(absl::StrCat(R"(
shl.b32 %r4, %r0, 5; mov.u32 %r5, s; add.s32 %r4, %r4, %r5;
shl.b32 %r6, %r0, 3; mov.u32 %r7, 0;
FILL:
add.s32 %r8, %r6, %r7; cvt.u16.u32 %h4, %r8; shl.b32 %r10, %r7, 1;
add.s32 %r10, %r10, %r4; st.shared.u16 [%r10], %h4;
add.s32 %r7, %r7, 1; setp.lt.u32 %p1, %r7, 8; @%p1 bra FILL;
bar.warp.sync -1;
ldmatrix.sync.aligned.m8n8.x4)",
                                   transposed ? ".trans" : "",
                                   R"(.shared.b16 {%r11,%r12,%r13,%r14}, [%r4];
add.s32 %r11, %r11, %r12; mov.b64 %d4, {%r11, %r13}; mov.b64 %d5, {%r12, %r14};
shl.b64 %d5, %d5, 8; mov.b64 %d0, {%r13, %r14};
)"),
                      ".shared .align 16 .b8 s[1024];"),
        {});
    ASSERT_TRUE(out.ok()) << out.status();
    for (int lane = 0; lane < 32; ++lane) {
      uint64_t want = 0;
      for (int tile = 2; tile < 4; ++tile) {
        for (int i = 0; i < 2; ++i) {
          const int major = lane / 4, minor = lane % 4 * 2 + i;
          const int row = transposed ? minor : major;
          const int column = transposed ? major : minor;
          want |= uint64_t(64 * tile + 8 * row + column)
                  << (32 * (tile - 2) + 16 * i);
        }
      }
      EXPECT_EQ((*out)[lane], want) << lane << " " << transposed;
    }
  }
}

TEST(PtxMatrixTest, SwizzledLoadMatrixHasNoConflicts) {
  // Rows of 64 bytes: plain, eight rows fall on two groups of banks; with the
  // chunk XORed by the row pair they spread. Four tiles, one wavefront each.
  const auto wavefronts = [](const std::string& chunk) {
    LaunchReport report;
    const auto out = RunSnippet(
        SnippetKernel(
            "and.b32 %r4, %r0, 15; shr.u32 %r5, %r0, 4; shr.u32 %r6, %r4, 1;"
            "and.b32 %r6, %r6, 3;" +
                chunk +
                "shl.b32 %r4, %r4, 6; shl.b32 %r5, %r5, 4; add.s32 %r4, %r4, "
                "%r5;"
                "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r7,%r8,%r9,%r10}, "
                "[%r4];",
            ".shared .align 16 .b8 s[1024];"),
        {}, &report);
    EXPECT_TRUE(out.ok()) << out.status();
    return report.counters.shared_wavefronts;
  };
  EXPECT_EQ(wavefronts(""), 16u);
  EXPECT_EQ(wavefronts("xor.b32 %r5, %r5, %r6;"), 4u);
}

}  // namespace
}  // namespace regatta::ptxsim

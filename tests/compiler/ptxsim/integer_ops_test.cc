// Integer instructions against C++ written down separately, over random and
// extreme operands.
#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <limits>

#include "base/random.h"
#include "tests/compiler/ptxsim/snippet.h"

namespace regatta::ptxsim {
namespace {

// Extremes first, then random bits, some of them small.
SnippetInput Operands(uint64_t seed) {
  Random random(seed);
  SnippetInput input;
  const uint64_t extremes[] = {0,
                               1,
                               ~0ull,
                               0x80000000u,
                               0x7FFFFFFF,
                               0x8000000000000000u,
                               0x7FFFFFFFFFFFFFFFu,
                               31};
  for (int i = 0; i < 32; ++i) {
    const auto next = [&](int index) {
      if (index < 8) return extremes[index];
      return index % 2 == 0 ? random.Next()
                            : random.Next() >> (random.Next() % 60);
    };
    input.a.push_back(next(i % 16));
    input.b.push_back(next((i * 5 + 3) % 16));
    input.c.push_back(next((i * 3 + 1) % 16));
  }
  return input;
}

using Reference32 = std::function<uint32_t(uint32_t, uint32_t, uint32_t)>;

void Check32(const std::string& instruction, const Reference32& reference) {
  for (uint64_t seed : {1, 2, 3}) {
    const SnippetInput input = Operands(seed);
    const auto out = Run32(instruction + " ", input);
    for (int i = 0; i < 32; ++i) {
      const auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
      ASSERT_EQ(out[i],
                reference(low(input.a[i]), low(input.b[i]), low(input.c[i])))
          << instruction << " of " << std::hex << low(input.a[i]) << " "
          << low(input.b[i]) << " " << low(input.c[i]);
    }
  }
}

int32_t S(uint32_t x) { return static_cast<int32_t>(x); }

TEST(PtxIntegerTest, Arithmetic32) {
  Check32("add.s32 %r9, %r1, %r2;", [](auto a, auto b, auto) { return a + b; });
  Check32("sub.u32 %r9, %r1, %r2;", [](auto a, auto b, auto) { return a - b; });
  Check32("sub.s32 %r9, 5, %r2;", [](auto, auto b, auto) { return 5 - b; });
  Check32("mul.lo.s32 %r9, %r1, %r2;",
          [](auto a, auto b, auto) { return a * b; });
  Check32("mul.hi.u32 %r9, %r1, %r2;", [](auto a, auto b, auto) {
    return static_cast<uint32_t>((uint64_t{a} * b) >> 32);
  });
  Check32("mul.hi.s32 %r9, %r1, %r2;", [](auto a, auto b, auto) {
    return static_cast<uint32_t>((int64_t{S(a)} * S(b)) >> 32);
  });
  Check32("mad.lo.s32 %r9, %r1, %r2, %r3;",
          [](auto a, auto b, auto c) { return a * b + c; });
  Check32("min.s32 %r9, %r1, %r2;", [](auto a, auto b, auto) {
    return static_cast<uint32_t>(S(a) < S(b) ? S(a) : S(b));
  });
  Check32("max.u32 %r9, %r1, %r2;",
          [](auto a, auto b, auto) { return a < b ? b : a; });
  Check32("abs.s32 %r9, %r1;",
          [](auto a, auto, auto) { return S(a) < 0 ? 0 - a : a; });
  Check32("neg.s32 %r9, %r1;", [](auto a, auto, auto) { return 0 - a; });
  Check32("add.sat.s32 %r9, %r1, %r2;", [](auto a, auto b, auto) {
    int64_t sum = int64_t{S(a)} + S(b);
    if (sum > 0x7FFFFFFF) sum = 0x7FFFFFFF;
    if (sum < -0x80000000ll) sum = -0x80000000ll;
    return static_cast<uint32_t>(sum);
  });
}

TEST(PtxIntegerTest, Division) {
  Check32("div.u32 %r9, %r1, %r2;",
          [](auto a, auto b, auto) { return b == 0 ? ~0u : a / b; });
  Check32("rem.u32 %r9, %r1, %r2;",
          [](auto a, auto b, auto) { return b == 0 ? a : a % b; });
  const auto out = Run32(
      "div.s32 %r4, %r1, %r2; rem.s32 %r5, %r1, %r2;"
      "shl.b32 %r4, %r4, 16; and.b32 %r5, %r5, 65535; or.b32 %r9, %r4, %r5;",
      {.a = {7, static_cast<uint64_t>(-7), 7, static_cast<uint64_t>(-7)},
       .b = {2, 2, static_cast<uint64_t>(-2), static_cast<uint64_t>(-2)},
       .threads = 4});
  EXPECT_EQ(out[0], 0x00030001u);
  EXPECT_EQ(out[1], 0xFFFDFFFFu);
  EXPECT_EQ(out[2], 0xFFFD0001u);
  EXPECT_EQ(out[3], 0x0003FFFFu);
}

TEST(PtxIntegerTest, Logic) {
  Check32("and.b32 %r9, %r1, %r2;", [](auto a, auto b, auto) { return a & b; });
  Check32("or.b32 %r9, %r1, %r2;", [](auto a, auto b, auto) { return a | b; });
  Check32("xor.b32 %r9, %r1, %r2;", [](auto a, auto b, auto) { return a ^ b; });
  Check32("not.b32 %r9, %r1;", [](auto a, auto, auto) { return ~a; });
  Check32("cnot.b32 %r9, %r1;", [](auto a, auto, auto) { return a == 0; });
  Check32("lop3.b32 %r9, %r1, %r2, %r3, 0x96;",
          [](auto a, auto b, auto c) { return a ^ b ^ c; });
  Check32("lop3.b32 %r9, %r1, %r2, %r3, 0xE8;",
          [](auto a, auto b, auto c) { return (a & b) | (b & c) | (a & c); });
  Check32("lop3.b32 %r9, %r1, %r2, %r3, 0xF4;",
          [](auto a, auto b, auto c) { return a | (b & ~c); });
}

TEST(PtxIntegerTest, Shifts) {
  Check32("shl.b32 %r9, %r1, %r2;",
          [](auto a, auto b, auto) { return b > 31 ? 0 : a << b; });
  Check32("shr.u32 %r9, %r1, %r2;",
          [](auto a, auto b, auto) { return b > 31 ? 0 : a >> b; });
  Check32("shr.s32 %r9, %r1, %r2;", [](auto a, auto b, auto) {
    return static_cast<uint32_t>(S(a) >> (b > 31 ? 31 : b));
  });
  const auto both = [](uint32_t a, uint32_t b) {
    return (uint64_t{b} << 32) | a;
  };
  Check32("shf.l.wrap.b32 %r9, %r1, %r2, %r3;", [&](auto a, auto b, auto c) {
    return static_cast<uint32_t>((both(a, b) << (c & 31)) >> 32);
  });
  Check32("shf.r.wrap.b32 %r9, %r1, %r2, %r3;", [&](auto a, auto b, auto c) {
    return static_cast<uint32_t>(both(a, b) >> (c & 31));
  });
  Check32("shf.r.clamp.b32 %r9, %r1, %r2, %r3;", [&](auto a, auto b, auto c) {
    return static_cast<uint32_t>(both(a, b) >> (c > 32 ? 32 : c));
  });
  Check32("shf.l.clamp.b32 %r9, %r1, %r2, %r3;", [&](auto a, auto b, auto c) {
    return static_cast<uint32_t>((both(a, b) << (c > 32 ? 32 : c)) >> 32);
  });
}

TEST(PtxIntegerTest, BitFields) {
  Check32("popc.b32 %r9, %r1;", [](auto a, auto, auto) {
    uint32_t n = 0;
    for (; a != 0; a &= a - 1) ++n;
    return n;
  });
  Check32("clz.b32 %r9, %r1;", [](auto a, auto, auto) {
    uint32_t n = 0;
    for (int i = 31; i >= 0 && ((a >> i) & 1) == 0; --i) ++n;
    return n;
  });
  Check32("brev.b32 %r9, %r1;", [](auto a, auto, auto) {
    uint32_t result = 0;
    for (int i = 0; i < 32; ++i) result |= ((a >> i) & 1) << (31 - i);
    return result;
  });
  // One bit after another, as the manual defines them.
  Check32("bfe.u32 %r9, %r1, 5, 10;",
          [](auto a, auto, auto) { return (a >> 5) & 1023; });
  Check32("bfe.s32 %r9, %r1, %r2, %r3;", [](auto a, auto b, auto c) {
    const uint32_t at = b & 255, length = c & 255;
    if (length == 0) return 0u;
    const uint32_t last = std::min(31u, at + length - 1);
    const uint32_t sign = (a >> last) & 1;
    uint32_t result = 0;
    for (uint32_t i = 0; i < 32; ++i) {
      const uint32_t bit =
          i < length && at + i < 32 ? (a >> (at + i)) & 1 : sign;
      result |= bit << i;
    }
    return result;
  });
  Check32("bfi.b32 %r9, %r1, %r2, %r3, 7;", [](auto a, auto b, auto c) {
    uint32_t result = b;
    for (uint32_t i = 0; i < 7; ++i) {
      const uint32_t at = (c & 255) + i;
      if (at > 31) break;
      result = (result & ~(1u << at)) | (((a >> i) & 1) << at);
    }
    return result;
  });
  Check32("bfind.u32 %r9, %r1;", [](auto a, auto, auto) {
    return a == 0 ? ~0u : 31u - std::countl_zero(a);
  });
  Check32("bfind.shiftamt.s32 %r9, %r1;", [](auto a, auto, auto) {
    const uint32_t bits = S(a) < 0 ? ~a : a;
    return bits == 0 ? ~0u : static_cast<uint32_t>(std::countl_zero(bits));
  });
  Check32("prmt.b32 %r9, %r1, %r2, 0x7531;", [](auto a, auto b, auto) {
    return ((a >> 8) & 0xFF) | ((a >> 24) << 8) | (((b >> 8) & 0xFF) << 16) |
           ((b >> 24) << 24);
  });
  Check32("prmt.b32 %r9, %r1, %r2, 0x8888;",
          [](auto a, auto, auto) { return (a & 0x80) != 0 ? ~0u : 0u; });
}

TEST(PtxIntegerTest, PackedProducts) {
  const auto byte = [](uint32_t x, int i) {
    return static_cast<int8_t>(x >> (8 * i));
  };
  Check32("dp4a.s32.s32 %r9, %r1, %r2, %r3;", [&](auto a, auto b, auto c) {
    for (int i = 0; i < 4; ++i) c += byte(a, i) * byte(b, i);
    return c;
  });
  Check32("dp4a.u32.s32 %r9, %r1, %r2, %r3;", [&](auto a, auto b, auto c) {
    for (int i = 0; i < 4; ++i) c += int((a >> (8 * i)) & 255) * byte(b, i);
    return c;
  });
  Check32("dp2a.hi.s32.s32 %r9, %r1, %r2, %r3;", [&](auto a, auto b, auto c) {
    return c + static_cast<int16_t>(a) * byte(b, 2) +
           static_cast<int16_t>(a >> 16) * byte(b, 3);
  });
  Check32("sad.u32 %r9, %r1, %r2, %r3;",
          [](auto a, auto b, auto c) { return c + (a < b ? b - a : a - b); });
  Check32("vabsdiff4.u32.u32.u32 %r9, %r1, %r2, %r3;",
          [](auto a, auto b, auto) {
            uint32_t result = 0;
            for (int i = 0; i < 4; ++i) {
              const int x = (a >> (8 * i)) & 255, y = (b >> (8 * i)) & 255;
              result |= uint32_t(x < y ? y - x : x - y) << (8 * i);
            }
            return result;
          });
}

TEST(PtxIntegerTest, SixteenBits) {
  Check32("add.s16 %h4, %h1, %h2; cvt.u32.u16 %r9, %h4;",
          [](auto a, auto b, auto) { return (a + b) & 0xFFFF; });
  Check32("mul.wide.s16 %r9, %h1, %h2;", [](auto a, auto b, auto) {
    return static_cast<uint32_t>(static_cast<int16_t>(a) *
                                 static_cast<int16_t>(b));
  });
  Check32("mul.wide.u16 %r9, %h1, %h2;",
          [](auto a, auto b, auto) { return (a & 0xFFFF) * (b & 0xFFFF); });
  Check32("shr.s16 %h4, %h1, 3; cvt.u32.u16 %r9, %h4;", [](auto a, auto, auto) {
    return static_cast<uint16_t>(static_cast<int16_t>(a) >> 3);
  });
  Check32("max.s16 %h4, %h1, %h2; cvt.s32.s16 %r9, %h4;",
          [](auto a, auto b, auto) {
            return static_cast<uint32_t>(
                std::max(static_cast<int16_t>(a), static_cast<int16_t>(b)));
          });
}

TEST(PtxIntegerTest, SixtyFourBits) {
  const SnippetInput input = Operands(9);
  const auto check = [&](const std::string& text, auto reference) {
    const auto out = Run64(text, input);
    for (int i = 0; i < 32; ++i) {
      ASSERT_EQ(out[i], reference(input.a[i], input.b[i], input.c[i])) << text;
    }
  };
  using U = uint64_t;
  using S64 = int64_t;
  check("add.s64 %d9, %d1, %d2;", [](U a, U b, U) { return a + b; });
  check("mul.lo.s64 %d9, %d1, %d2;", [](U a, U b, U) { return a * b; });
  check("mul.hi.s64 %d9, %d1, %d2;", [](U a, U b, U) {
    return static_cast<U>(
        (static_cast<__int128>(static_cast<S64>(a)) * static_cast<S64>(b)) >>
        64);
  });
  check("mad.wide.u32 %d9, %r1, %r2, %d3;",
        [](U a, U b, U c) { return (a & 0xFFFFFFFF) * (b & 0xFFFFFFFF) + c; });
  check("mul.wide.s32 %d9, %r1, %r2;", [](U a, U b, U) {
    return static_cast<U>(S64{static_cast<int32_t>(a)} *
                          static_cast<int32_t>(b));
  });
  check("shl.b64 %d9, %d1, %r2;", [](U a, U b, U) {
    const uint32_t by = static_cast<uint32_t>(b);
    return by > 63 ? 0 : a << by;
  });
  check("shr.s64 %d9, %d1, 9;",
        [](U a, U, U) { return static_cast<U>(static_cast<S64>(a) >> 9); });
  check("div.u64 %d9, %d1, %d2;",
        [](U a, U b, U) { return b == 0 ? ~U{0} : a / b; });
  check("min.s64 %d9, %d1, %d2;", [](U a, U b, U) {
    return static_cast<U>(std::min(static_cast<S64>(a), static_cast<S64>(b)));
  });
  check("xor.b64 %d9, %d1, %d2;", [](U a, U b, U) { return a ^ b; });
  check("bfi.b64 %d9, %d1, %d2, 32, 32;",
        [](U a, U b, U) { return (b & 0xFFFFFFFF) | (a << 32); });
  check("mov.b64 {%r4, %r5}, %d1; mov.b64 %d9, {%r5, %r4};",
        [](U a, U, U) { return (a << 32) | (a >> 32); });
  check("popc.b64 %r4, %d1; cvt.u64.u32 %d9, %r4;",
        [](U a, U, U) { return static_cast<U>(std::popcount(a)); });
  check("brev.b64 %d9, %d1; brev.b64 %d9, %d9;", [](U a, U, U) { return a; });
}

// Numbers of 64 bits out of words of 32, and of 128 out of 64.
TEST(PtxIntegerTest, Carries) {
  const SnippetInput input = Operands(6);
  const std::string split = "mov.b64 {%r4, %r5}, %d1; mov.b64 {%r6, %r7}, %d2;";
  const auto add = Run64(split +
                             "add.cc.u32 %r8, %r4, %r6;"
                             "addc.u32 %r9, %r5, %r7;"
                             "mov.b64 %d9, {%r8, %r9};",
                         input);
  const auto sub = Run64(split +
                             "sub.cc.s32 %r8, %r4, %r6;"
                             "subc.s32 %r9, %r5, %r7;"
                             "mov.b64 %d9, {%r8, %r9};",
                         input);
  // The upper half of a 64 x 64 product by columns of 32 x 32.
  const auto high = Run64(split + R"(
mul.hi.u32 %r10, %r4, %r6;
mad.lo.cc.u32 %r11, %r4, %r7, %r10; madc.hi.u32 %r12, %r4, %r7, 0;
mad.lo.cc.u32 %r13, %r5, %r6, %r11; madc.hi.cc.u32 %r14, %r5, %r6, %r12;
addc.u32 %r15, 0, 0;
mad.lo.cc.u32 %r16, %r5, %r7, %r14; madc.hi.u32 %r17, %r5, %r7, %r15;
mov.b64 %d9, {%r16, %r17};
)",
                          input);
  const auto wide = Run64(
      "add.cc.u64 %d4, %d1, %d2; addc.cc.u64 %d5, %d1, %d3; addc.u64 %d9, 0, "
      "0;",
      input);
  for (int i = 0; i < 32; ++i) {
    const uint64_t a = input.a[i], b = input.b[i], c = input.c[i];
    EXPECT_EQ(add[i], a + b);
    EXPECT_EQ(sub[i], a - b);
    EXPECT_EQ(high[i], static_cast<uint64_t>(
                           (static_cast<unsigned __int128>(a) * b) >> 64));
    const unsigned __int128 sum =
        static_cast<unsigned __int128>(a) + c + (a + b < a ? 1 : 0);
    EXPECT_EQ(wide[i], static_cast<uint64_t>(sum >> 64));
  }
}

TEST(PtxIntegerTest, ComparisonsAndSelections) {
  Check32("setp.lt.s32 %p1, %r1, %r2; selp.b32 %r9, %r1, %r3, %p1;",
          [](auto a, auto b, auto c) { return S(a) < S(b) ? a : c; });
  Check32("setp.lo.u32 %p1, %r1, %r2; selp.b32 %r9, 1, 0, %p1;",
          [](auto a, auto b, auto) { return a < b; });
  Check32("setp.hs.u32 %p1, %r1, %r2; selp.b32 %r9, 1, 0, %p1;",
          [](auto a, auto b, auto) { return a >= b; });
  Check32(
      "setp.ne.u32 %p1, %r3, 0; setp.gt.and.s32 %p2|%p3, %r1, %r2, !%p1;"
      "selp.b32 %r4, 1, 0, %p2; selp.b32 %r5, 2, 0, %p3; or.b32 %r9, %r4, %r5;",
      [](auto a, auto b, auto c) {
        const bool other = c == 0;
        return (S(a) > S(b) && other ? 1u : 0u) |
               (!(S(a) > S(b)) && other ? 2u : 0u);
      });
  Check32("set.eq.u32.s32 %r9, %r1, %r2;",
          [](auto a, auto b, auto) { return a == b ? ~0u : 0u; });
  Check32("slct.b32.s32 %r9, %r1, %r2, %r3;",
          [](auto a, auto b, auto c) { return S(c) >= 0 ? a : b; });
  const SnippetInput input = Operands(4);
  const auto out = Run32(
      "setp.gt.s64 %p1, %d1, %d2; @%p1 mov.u32 %r9, 1; @!%p1 mov.u32 %r9, 2;",
      input);
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(out[i], static_cast<int64_t>(input.a[i]) >
                              static_cast<int64_t>(input.b[i])
                          ? 1u
                          : 2u);
  }
}

}  // namespace
}  // namespace regatta::ptxsim

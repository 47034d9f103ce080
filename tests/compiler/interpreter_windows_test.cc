// What convolutions and pooling mean, written out as loops.
#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/compiler/operator_call.h"

namespace regatta {
namespace {

// Everything that conv2d and depthwise_conv2d take; NHWC and NCHW.
struct Conv {
  int64_t n, h, w, ci, co, kh, kw, groups;
  int64_t sh = 1, sw = 1, dh = 1, dw = 1, top = 0, bottom = 0, left = 0,
          right = 0;
};

void ExpectConv(const std::string& text, const Conv& p, bool channels_last,
                const std::string& activation = "none", bool bias = false) {
  const Call run(text);
  const int64_t oh =
      (p.h + p.top + p.bottom - (p.kh - 1) * p.dh - 1) / p.sh + 1;
  const int64_t ow =
      (p.w + p.left + p.right - (p.kw - 1) * p.dw - 1) / p.sw + 1;
  ASSERT_EQ(static_cast<int64_t>(run.size()), p.n * oh * ow * p.co) << text;
  const int64_t cg = p.ci / p.groups, og = p.co / p.groups;
  run.Expect([&](int64_t at) {
    int64_t n, y, x, o;
    if (channels_last) {
      o = at % p.co, x = at / p.co % ow, y = at / p.co / ow % oh;
    } else {
      x = at % ow, y = at / ow % oh, o = at / ow / oh % p.co;
    }
    n = at / (p.co * oh * ow);
    const int64_t g = o / og;
    double sum = bias ? run["bias"][o] : 0;
    for (int64_t r = 0; r < p.kh; ++r) {
      for (int64_t s = 0; s < p.kw; ++s) {
        const int64_t yy = y * p.sh + r * p.dh - p.top;
        const int64_t xx = x * p.sw + s * p.dw - p.left;
        if (yy < 0 || yy >= p.h || xx < 0 || xx >= p.w) continue;
        for (int64_t c = 0; c < cg; ++c) {
          const int64_t ic = g * cg + c;
          sum += channels_last
                     ? run["X"][((n * p.h + yy) * p.w + xx) * p.ci + ic] *
                           run["W"][((r * p.kw + s) * cg + c) * p.co + o]
                     : run["X"][((n * p.ci + ic) * p.h + yy) * p.w + xx] *
                           run["W"][((o * cg + c) * p.kh + r) * p.kw + s];
        }
      }
    }
    return Act(activation, sum);
  });
}

TEST(OperatorMeaningTest, ConvolutionsWithGroupsStridesPaddingAndBias) {
  for (const bool last : {true, false}) {
    const std::string layout = last ? ")" : ",layout=NCHW)";
    ExpectConv("conv2d(n=2,h=7,w=6,ci=6,co=9,kh=3,kw=3,pad=1,groups=3" + layout,
               {2, 7, 6, 6, 9, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1}, last);
    ExpectConv(
        "conv2d(n=1,h=8,w=9,ci=4,co=6,kh=3,kw=2,groups=2,stride_h=2,"
        "dilation_w=3,pad_top=2,pad_right=1,bias=yes,activation=tanh" +
            layout,
        {1, 8, 9, 4, 6, 3, 2, 2, 2, 1, 1, 3, 2, 0, 0, 1}, last, "tanh", true);
    ExpectConv(
        "conv2d(n=1,h=5,w=6,ci=4,co=8,kh=3,kw=3,groups=4,dtype=bf16" + layout,
        {1, 5, 6, 4, 8, 3, 3, 4}, last);
    ExpectConv(
        "depthwise_conv2d(n=2,h=6,w=7,c=5,kh=3,kw=3,stride=2,pad=1" + layout,
        {2, 6, 7, 5, 5, 3, 3, 5, 2, 2, 1, 1, 1, 1, 1, 1}, last);
    ExpectConv(
        "depthwise_conv2d(n=1,h=6,w=7,c=5,kh=3,kw=3,multiplier=3,"
        "dtype=f16,bias=yes,activation=relu" +
            layout,
        {1, 6, 7, 5, 15, 3, 3, 5}, last, "relu", true);
    ExpectConv("depthwise_conv2d(n=1,h=6,w=7,c=5,kh=3,kw=3,dtype=i8" + layout,
               {1, 6, 7, 5, 5, 3, 3, 5}, last);
  }
}

TEST(OperatorMeaningTest, ConvolutionsInBlocksOfChannels) {
  const Call run(
      "conv2d(n=1,h=5,w=6,ci=4,co=6,kh=3,kw=3,pad=1,layout=NCHWc,"
      "block=2)");
  run.Expect([&](int64_t at) {
    const int64_t oi = at % 2, x = at / 2 % 6, y = at / 12 % 5, ob = at / 60;
    double sum = 0;
    for (int64_t c = 0; c < 4; ++c)
      for (int64_t r = 0; r < 3; ++r)
        for (int64_t s = 0; s < 3; ++s) {
          const int64_t yy = y + r - 1, xx = x + s - 1;
          if (yy < 0 || yy >= 5 || xx < 0 || xx >= 6) continue;
          sum += run["X"][((c / 2 * 5 + yy) * 6 + xx) * 2 + c % 2] *
                 run["W"]
                    [(((ob * 2 + c / 2) * 3 + r) * 3 + s) * 4 + c % 2 * 2 + oi];
        }
    return sum;
  });
  const Call depthwise(
      "depthwise_conv2d(n=1,h=5,w=6,c=6,kh=2,kw=2,layout=NCHWc,block=3,"
      "bias=yes)");
  depthwise.Expect([&](int64_t at) {
    const int64_t ci = at % 3, x = at / 3 % 5, y = at / 15 % 4, cb = at / 60;
    double sum = depthwise["bias"][cb * 3 + ci];
    for (int64_t r = 0; r < 2; ++r)
      for (int64_t s = 0; s < 2; ++s) {
        sum += depthwise["X"][((cb * 5 + y + r) * 6 + x + s) * 3 + ci] *
               depthwise["W"][((cb * 2 + r) * 2 + s) * 3 + ci];
      }
    return sum;
  });
}

struct Transposed {
  int64_t n, h, w, ci, co, kh, kw, s, pad, extra;
};

// As it is defined: every input element adds to a window of the output.
void ExpectTransposed(const Transposed& p, bool channels_last, bool bias) {
  const Call run(absl::StrCat(
      "conv2d_transpose(n=", p.n, ",h=", p.h, ",w=", p.w, ",ci=", p.ci,
      ",co=", p.co, ",kh=", p.kh, ",kw=", p.kw, ",stride=", p.s, ",pad=", p.pad,
      ",out_pad=", p.extra, ",layout=", channels_last ? "NHWC" : "NCHW",
      ",bias=", bias ? "yes" : "no", ")"));
  const int64_t oh = (p.h - 1) * p.s + p.kh - 2 * p.pad + p.extra;
  const int64_t ow = (p.w - 1) * p.s + p.kw - 2 * p.pad + p.extra;
  TensorValues y(p.n * oh * ow * p.co, 0);
  ASSERT_EQ(run.size(), y.size());
  const auto place = [&](int64_t n, int64_t a, int64_t b, int64_t o) {
    return channels_last ? ((n * oh + a) * ow + b) * p.co + o
                         : ((n * p.co + o) * oh + a) * ow + b;
  };
  for (int64_t n = 0; n < p.n; ++n)
    for (int64_t i = 0; i < p.h; ++i)
      for (int64_t j = 0; j < p.w; ++j)
        for (int64_t c = 0; c < p.ci; ++c)
          for (int64_t r = 0; r < p.kh; ++r)
            for (int64_t s = 0; s < p.kw; ++s)
              for (int64_t o = 0; o < p.co; ++o) {
                const int64_t a = i * p.s + r - p.pad, b = j * p.s + s - p.pad;
                if (a < 0 || a >= oh || b < 0 || b >= ow) continue;
                y[place(n, a, b, o)] +=
                    channels_last
                        ? run["X"][((n * p.h + i) * p.w + j) * p.ci + c] *
                              run["W"][((r * p.kw + s) * p.ci + c) * p.co + o]
                        : run["X"][((n * p.ci + c) * p.h + i) * p.w + j] *
                              run["W"][((o * p.ci + c) * p.kh + r) * p.kw + s];
              }
  run.Expect([&](int64_t at) {
    const int64_t o = channels_last ? at % p.co : at / ow / oh % p.co;
    return y[at] + (bias ? run["bias"][o] : 0);
  });
}

TEST(OperatorMeaningTest, TransposedConvolutions) {
  const Transposed cases[] = {
      {1, 4, 5, 3, 2, 3, 3, 1, 0, 0}, {2, 4, 5, 3, 2, 3, 3, 1, 1, 0},
      {1, 4, 5, 3, 2, 2, 2, 2, 0, 0}, {1, 4, 5, 3, 2, 4, 4, 2, 1, 0},
      {1, 4, 5, 3, 2, 3, 3, 2, 1, 1}, {1, 4, 5, 3, 2, 5, 3, 3, 2, 1},
      {1, 4, 5, 3, 2, 1, 2, 3, 0, 2}, {1, 3, 3, 2, 2, 4, 4, 2, 3, 0},
      {1, 1, 1, 1, 1, 1, 1, 1, 0, 0}};
  for (const Transposed& test : cases) {
    ExpectTransposed(test, true, false);
    ExpectTransposed(test, false, true);
  }
}

struct Pool {
  int64_t n, h, w, c, kh, kw, s, pad;
};

void ExpectPool(const Pool& p, const std::string& kind, bool count_all,
                const std::string& dtype) {
  const bool greatest = kind == "max" || kind == "global_max";
  const std::string window = kind == "max" || kind == "avg"
                                 ? absl::StrCat(",kh=", p.kh, ",kw=", p.kw,
                                                ",stride=", p.s, ",pad=", p.pad)
                                 : "";
  const Call run(absl::StrCat("pool2d(n=", p.n, ",h=", p.h, ",w=", p.w,
                              ",c=", p.c, window, ",kind=", kind,
                              ",count=", count_all ? "window" : "image",
                              ",dtype=", dtype, ")"));
  const int64_t oh = (p.h + 2 * p.pad - p.kh) / p.s + 1;
  const int64_t ow = (p.w + 2 * p.pad - p.kw) / p.s + 1;
  ASSERT_EQ(static_cast<int64_t>(run.size()), p.n * oh * ow * p.c);
  run.Expect([&](int64_t at) {
    const int64_t c = at % p.c, x = at / p.c % ow, y = at / p.c / ow % oh,
                  n = at / (p.c * ow * oh);
    double sum = 0, most = -1e30;
    int64_t count = 0;
    for (int64_t r = 0; r < p.kh; ++r)
      for (int64_t s = 0; s < p.kw; ++s) {
        const int64_t yy = y * p.s + r - p.pad, xx = x * p.s + s - p.pad;
        if (yy < 0 || yy >= p.h || xx < 0 || xx >= p.w) continue;
        const double value = run["X"][((n * p.h + yy) * p.w + xx) * p.c + c];
        sum += value;
        most = std::max(most, value);
        ++count;
      }
    if (greatest) return most;
    const double mean = sum / (count_all ? p.kh * p.kw : count);
    return dtype == "i8" ? std::nearbyint(mean) : mean;
  });
}

TEST(OperatorMeaningTest, Pooling) {
  for (const char* dtype : {"f32", "f16", "bf16", "i8"}) {
    ExpectPool({2, 7, 6, 3, 3, 3, 2, 1}, "max", false, dtype);
    ExpectPool({1, 6, 7, 3, 2, 2, 2, 0}, "avg", false, dtype);
    ExpectPool({1, 6, 7, 3, 4, 2, 1, 1}, "avg", false, dtype);
    ExpectPool({1, 6, 7, 3, 4, 2, 1, 1}, "avg", true, dtype);
    ExpectPool({2, 4, 4, 3, 4, 4, 1, 0}, "global_avg", false, dtype);
    ExpectPool({2, 5, 3, 3, 5, 3, 1, 0}, "global_max", false, dtype);
  }
}

}  // namespace
}  // namespace regatta

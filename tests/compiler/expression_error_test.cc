// Every text that is no workload gets a message that says what and where.
#include <string>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "compiler/expr/parser.h"
#include "compiler/ops/op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/status_text.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

struct Case {
  std::string text;
  std::string message;  // a part of it
};

void ExpectRefused(const Case& test) {
  const auto workload = ParseWorkload(test.text);
  ASSERT_FALSE(workload.ok()) << test.text.substr(0, 100);
  EXPECT_EQ(workload.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(StatusText(workload), HasSubstr(test.message))
      << test.text.substr(0, 100);
  // A message is for reading: it never repeats a megabyte.
  EXPECT_LT(StatusText(workload).size(), 600u);
}

std::string Repeat(std::string_view part, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += part;
  return text;
}

TEST(CallErrorTest, AnUnknownOperatorIsAnsweredWithAllThatAreKnown) {
  const auto workload = ParseWorkload("matmull(m=4,n=4,k=4)");
  ASSERT_FALSE(workload.ok());
  ASSERT_FALSE(Ops().empty());
  for (const Op& op : Ops()) {
    EXPECT_THAT(StatusText(workload), HasSubstr(op.name));
  }
}

TEST(CallErrorTest, EachMistakeIsNamed) {
  const Case cases[] = {
      {"matmull(m=4,n=4,k=4)", "unknown operator 'matmull'; known are "},
      {"matmul(m=0,n=4,k=4)", "m is 0"},
      {"matmul(m=-3,n=4,k=4)", "m is -3"},
      {"matmul(m=4,n=4)", "'k' (columns of A, rows of B) is missing"},
      {"matmul()", "'m' (rows of A and C) is missing"},
      {"matmul(m=99999999999999999999,n=4,k=4)", "m is 99999999999999999999"},
      {"matmul(m=4000000000,n=4000000000,k=4000000000)", "m is 4000000000"},
      {"matmul(m=2000000000,n=2000000000,k=1)", "tensor 'C' has"},
      {"matmul(m=4.5,n=4,k=4)", "m is '4.5'; it must be a whole number"},
      {"matmul(m=1e3,n=4,k=4)", "m is '1e3'"},
      {"matmul(m=four,n=4,k=4)", "m is 'four'"},
      {"matmul(m=,n=4,k=4)", "at character 10"},
      {"matmul(m=4,n=4,k=4,dtype=f99)",
       "dtype is 'f99'; it must be one of f32, f16, bf16, i8"},
      {"matmul(m=4,n=4,k=4,dtype=i8,out_dtype=f32)", "out_dtype=f32"},
      {"matmul(m=4,m=5,n=4,k=4)", "at character 12"},
      {"matmul(m=4,m=5,n=4,k=4)", "'m' is given twice"},
      {"matmul(m=4,n=4,k=4,z=4)", "matmul has no parameter 'z'"},
      {"matmul(4,4,4)", "a parameter as name=value; matmul takes m, n, k"},
      {"matmul(m=4,n=4,k=4", "at the end of the text"},
      {"matmul(m=4,n=4,k=4) and more", "the operator call is complete"},
      {"matmul", "expected '('"},
      {"softmax(rows=1,cols=0)", "cols is 0"},
      {"softmax(rows=1,cols=1,dtype=i8)", "dtype is 'i8'"},
      {"conv2d(n=1,h=2,w=2,ci=3,co=4,kh=5,kw=5,stride=1,pad=0)",
       "the window of 5 (kh=5, dilation=1) is larger than the padded input of "
       "2 (h=2, pad=0)"},
      {"conv2d(n=1,h=9,w=2,ci=3,co=4,kh=2,kw=2,dilation=2)", "kw=2"},
      {"conv2d(n=1,h=9,w=9,ci=3,co=4,kh=3,kw=3,pad=-1)", "pad is -1"},
      {"conv2d(n=1,h=9,w=9,ci=3,co=4,kh=3,kw=3,stride=0)", "stride is 0"},
      {"conv2d(n=1,h=9,w=9,ci=3,co=4,kh=3,kw=3,layout=CHWN)",
       "one of NHWC, NCHW, NCHWc"},
      {"conv2d(n=1,h=9,w=9,ci=4,co=6,kh=3,kw=3,groups=4)",
       "groups=4 does not divide ci=4 and co=6"},
      {"conv2d(n=1,h=9,w=9,ci=8,co=6,kh=3,kw=3,layout=NCHWc,block=8)",
       "blocks of 8 channels, which do not divide the 6 output channels"},
      {"conv2d(n=1,h=2,w=9,ci=1,co=1,kh=5,kw=3,pad_top=1)",
       "padded input of 3 (h=2, pad=1+0)"},
      {"conv2d(n=1,h=9,w=9,ci=1,co=1,kh=3,kw=3,stride_h=0)",
       "stride_h is 0; it must be from 1"},
      {"conv2d(n=1,h=9,w=9,ci=1,co=1,kh=3,kw=3,stride_h=stride)",
       "stride_h is 'stride'; it must be a whole number"},
      {"dense(m=1,n=1,k=1,activation=swish)",
       "one of none, relu, gelu, sigmoid, tanh"},
      {"dense(m=1,n=1,k=1,activation=gelu,dtype=i8,out_dtype=i8)",
       "activation=gelu does not go with out_dtype=i8"},
      {"dense(m=1,n=1,k=1,out_dtype=i8)", "does not go with dtype=f32"},
      {"matmul(m=1,n=1,k=1,activation=tanh,dtype=i8)",
       "activation=tanh does not go with out_dtype=i32"},
      {"conv2d_transpose(n=1,h=2,w=2,ci=1,co=1,kh=2,kw=2,stride=2,out_pad=2)",
       "out_pad=2 must be less than the stride of 2"},
      {"conv2d_transpose(n=1,h=1,w=1,ci=1,co=1,kh=3,kw=3,pad=2)",
       "leaves nothing of the 3 elements that h=1 and kh=3 give"},
      {"pool2d(n=1,h=4,w=4,c=1)", "kind=max needs kh"},
      {"pool2d(n=1,h=4,w=4,c=1,kh=2,kw=2,pad=2)",
       "a padding of 2 leaves windows of 2 with nothing"},
      {"pool2d(n=1,h=4,w=4,c=1,kh=2,kw=2,kind=global_max)",
       "takes the whole image; leave kh out"},
      {"pool2d(n=1,h=4,w=4,c=1,kind=global_avg,pad_top=2)",
       "takes the whole image; leave pad_top out"},
      {"pool2d(n=1,h=4,w=4,c=1,kind=global_avg,stride_h=2)",
       "takes the whole image; leave stride_h out"},
      {"layer_norm(rows=1,cols=1,eps=-1)",
       "eps is '-1'; it must be a number from 0"},
      {"layer_norm(rows=1,cols=1,eps=nan)", "eps is 'nan'"},
      {"elementwise(shape=4x4,chain=relu+swish)",
       "chain is 'swish'; it must be one of relu"},
      {"elementwise(shape=4x0)", "shape is 0; it must be from 1"},
      {"elementwise(shape=4x)", "shape is ''; it must be a whole number"},
      {"elementwise(shape=1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1)",
       "shape has 17 parts; at most 16"},
      {"binary(a=4x5,b=4)",
       "dimension 1 of the result would be 5 for a and 4 for b"},
      {"binary(a=4,b=4,kind=div,dtype=i8)", "integers are not divided"},
      {"reduce(shape=4x5,axes=2)",
       "axes names dimension 2 of a tensor with dimensions 0 to 1"},
      {"reduce(shape=4x5,axes=0x0)", "axes names dimension 0 twice"},
      {"reduce(shape=4x5,axes=0,kind=mean,dtype=i8)", "a mean is a fraction"},
      {"transpose(shape=4x5,perm=0)", "perm has 1 entries"},
      {"transpose(shape=4x5,perm=1x1)", "perm names dimension 1 twice"},
      {"concat(shape=4x5,axis=1,sizes=2x2)",
       "sizes add up to 4, but dimension 1 of shape is 5"},
      {"slice(shape=9,begin=2,size=3,step=4)",
       "dimension 0 would be read up to element 10 of 9"},
      {"Y[i,j] = X[I[i],j] where i=4, j=4",
       "An element whose place is read from a tensor (a gather) cannot be "
       "said"},
  };
  for (const Case& test : cases) ExpectRefused(test);
}

TEST(ExpressionErrorTest, EachMistakeIsNamedWithItsPlace) {
  const Case cases[] = {
      {"", "the text is empty"},
      {"   \n", "the text is empty"},
      {"(", "at character 1, near '('"},
      {"nonsense{", "at character 9"},
      {"\xC3\xA9", "at character 1, near '\\xc3\\xa9'"},
      {std::string("C[i] = A[i]\0 where i=3", 22), "at character 12"},
      {"C[i,j] = sum(k) A[i,k] * B[q,j]",
       "at character 28, near 'q,j]': index 'q' is not bound"},
      {"C[i,j] = sum(k) A[i,k] * B[k,j]", "'where'"},
      {"C[i,j] = sum(k) A[i,k] * B[k,j] where", "expected a binding"},
      {"C[i,j] = sum(k) A[i,k] * B[k,j] where i=4,j=4",
       "index 'k' has no extent"},
      {"C[i] = A[i] where i=4 junk", "at character 23, near 'junk'"},
      {"C[i] = A[i] i=4", "expected 'where'"},
      {"C[i] = A[i] where i=4,", "expected a binding"},
      {"C[i] = A[i] where i=0", "the extent of 'i' is 0"},
      {"C[i] = A[i] where i=-4", "the extent of 'i' is -4"},
      {"C[i] = A[i] where i=4.5", "the extent of 'i' is 4.5"},
      {"C[i] = A[i] where i=99999999999999999999", "the extent of 'i'"},
      {"C[i] = A[i] where i=4, i=5", "'i' is given twice"},
      {"C[i] = A[i] where i=4, z=5", "'z' is no index and no tensor"},
      {"C[i] = A[i] where i=4, dtype=f64", "expected an element type"},
      {"C[i] = A[i] where i=4, A=f32[3]", "runs from 0 to 3"},
      {"C[i] = A[i] where i=4, A=f32[0]", "dimension 0 of 'A' is 0"},
      {"C[i] = A[i] where i=4, C=f32[5]", "the shape of 'C'"},
      {"C[i] = A[i,i]; D[i] = A[i] where i=4", "'A' has 2 dimensions, not 1"},
      {"C[i] = A[i-1] where i=4", "subscript 'i-1' of 'A' runs from -1"},
      {"C[i] = pad(A[i-1], 0) where i=4", "'A' is read through pad()"},
      {"C[i] = pad(A[i-1]) where i=4, A=f32[4]", "expected ','"},
      {"C[i] = pad(3, 0) where i=4", "a tensor's element"},
      {"C[i] = pad(A[i+100000000],0) where i=4, A=f32[4]",
       "padding does not reach that far"},
      {"C[i] = A[i] * nan where i=4", "nan is no number"},
      {"C[i] = A[i] * 1e999 where i=4", "too large"},
      {"C[i] = A[i] * 1e39 where i=4", "this number is no f32"},
      {"C[i] = A[i] * 0.5 where i=4, dtype=i32", "this number is no i32"},
      {"C[i] = A[i] / 2 where i=4, dtype=i32", "integers are not divided"},
      {"C[i] = exp(A[i]) where i=4, dtype=i32", "takes floats"},
      {"C[i] = A[i] + B[i] where i=4, B=i32[4]", "f32 and i32"},
      {"C[i] = A[i] where i=4, A=i32[4]", "'C' holds f32"},
      {"C[i] = sum(k) A[i,k] where i=4, k=4, dtype=i8", "'C' holds i8"},
      {"C[i] = A[i] < 1 where i=4", "a comparison"},
      {"C[i] = select(A[i], 1, 2) where i=4", "needs a comparison"},
      {"C[i] = select(i < 2, 1) where i=4", "argument 3 of 3"},
      {"C[i] = sin(A[i]) where i=4", "unknown function 'sin'"},
      {"C[i] = A[i] + sum(k) B[k] where i=4,k=4", "a stage of its own"},
      {"C[i] = A[i*i] where i=4", "cannot be multiplied"},
      {"C[i] = A[B[i]] where i=4", "holds no tensor"},
      {"C[i] = A[i/2] where i=4", "dimension 0 of 'A' (of extent 2)"},
      {"C[i] = A[i%2] where i=4", "T[e/K,e%K]"},
      {"C[i] = A[i/2,i%3] where i=4", "not part of one position"},
      {"C[i,j] = A[i/3,j%3] where i=4, j=3", "not part of one position"},
      {"C[i] = A[i/4,i%4] where i=9, A=f32[3,3]", "(of extent 3)"},
      {"C[i] = A[i/3,i%3] where i=10, A=f32[3,3]",
       "subscript 'i' of 'A' runs from 0 to 9, but dimension 0 with those "
       "after it has the elements 0 to 8"},
      {"C[i] = A[0,i/4294967296%4294967296,i/4294967296%4294967296,"
       "i%4294967296] where i=4",
       "not part of one position"},
      {"C[i] = A[i+1/3,i%3] where i=4", "stands in parentheses"},
      {"C[i] = A[i/3+1,i%3] where i=4", "a whole subscript"},
      {"C[i] = A[i/0,i%3] where i=4", "what a subscript is divided by is 0"},
      {"C[i] = A[i]%3 where i=4", "at character 12"},
      {"C[i] = A[1.5*i] where i=4", "whole numbers only"},
      {"C[i] = A[99999999999999999999*i] where i=4", "too large"},
      {"C[i] = A[16000000*16000000*16000000*i] where i=4", "too large"},
      {"C[i,i] = A[i] where i=4", "index 'i' is bound twice"},
      {"C[i] = sum(i) A[i] where i=4", "index 'i' is bound twice"},
      {"C[i+1] = A[i] where i=4", "plain index names only"},
      {"C[3] = A[i] where i=4", "the name of an index"},
      {"C[] = A[i] where i=4", "the name of an index"},
      {"C[i] = C[i] where i=4", "'C' is read before it is assigned"},
      {"C[i] = D[i]; D[i] = A[i] where i=4", "'D' is read before"},
      {"C[i] = A[i]; C[i] = B[i] where i=4", "'C' is assigned twice"},
      {"C[i] = i[0] where i=4", "'i' is an index here"},
      {"C[i] = A where i=4", "index 'A' is not bound"},
      {"C[max] = A[max] where max=4", "a word of the language"},
      {"where[i] = A[i] where i=4", "a word of the language"},
      {"C[i] = (A[i] where i=4", "to close the parenthesis"},
      {"C[i] = where i=4", "a word of the language"},
      {"C[i] = * A[i] where i=4", "expected a value"},
      {"C[i] = A[i] $ 2 where i=4", "at character 13"},
      {"C[i] = A[i where i=4", "expected ']'"},
      {absl::StrCat(std::string(65, 'C'), "[i] = A[i] where i=4"),
       "at most 64 characters"},
      {"C[i,j,k] = A[i] where i=100000, j=100000, k=100000",
       "tensor 'C' has 1e+15 elements"},
      {"C[i] = sum(j,k) A[i] where i=1000000, j=1000000, k=1000000",
       "stage 'C': 1e+18 iterations"},
  };
  for (const Case& test : cases) ExpectRefused(test);
}

TEST(ExpressionErrorTest, HostileSizesCostLittle) {
  const std::string tail = " where i=3";
  const Case cases[] = {
      {std::string(1 << 20, '('), "at most 65536"},
      {"C[i] = " + std::string(60000, '('), "nested too deeply"},
      {"C[i] = A[" + std::string(60000, '('), "nested too deeply"},
      {"C[i] = A[" + std::string(60000, '-') + "i]" + tail,
       "nested too deeply"},
      {"C[i] = " + std::string(60000, '-') + "A[i]" + tail,
       "nested too deeply"},
      {"C[i] = " + Repeat("exp(", 10000) + "i", "nested too deeply"},
      {"C[i] = A[i]" + Repeat("+A[i]", 10000) + tail, "nested too deeply"},
      {"C[i] = A[i]" + Repeat("*A[i]", 10000) + tail, "nested too deeply"},
      {Repeat("C[i] = A[i];", 5000), "a stage such as"},
      {"C[i] = A[" + Repeat("i,", 20000) + "i]" + tail, "16 dimensions"},
  };
  for (const Case& test : cases) ExpectRefused(test);
  std::string many_tensors;
  for (int i = 0; i < 100; ++i) {
    absl::StrAppend(&many_tensors, "T", i, "[i] = A[i];");
  }
  ExpectRefused({many_tensors, "more than 64 tensors"});
}

TEST(ExpressionErrorTest, TextWithOneByteChangedIsReadOrRefusedButNeverKills) {
  const std::string good =
      "C[i,j] = sum(k) pad(A[2*i+k-1,k], -0.5) * B[k,j]; D[i,j] = "
      "select(C[i,j] < 1e-3, f32(i), max(C[i,j], 0)) "
      "where i=3, j=4, k=5, A=f32[7,5]";
  ASSERT_STATUS_OK(ParseWorkload(good));
  Random random(7);
  const std::string alphabet = "()[],;=<>+-*/.0123456789eijkABCDwhf \xFF";
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = good;
    const size_t at = random.Below(text.size());
    switch (random.Below(3)) {
      case 0:
        text[at] = alphabet[random.Below(alphabet.size())];
        break;
      case 1:
        text.erase(at, 1 + random.Below(5));
        break;
      default:
        text.insert(at, 1, alphabet[random.Below(alphabet.size())]);
    }
    const auto workload = ParseWorkload(text);
    if (workload.ok()) {
      // What was accepted is a workload like any other.
      const auto again = ParseWorkload(workload->text);
      ASSERT_STATUS_OK(again);
      EXPECT_EQ(again->key, workload->key);
    } else {
      EXPECT_EQ(workload.status().code(), absl::StatusCode::kInvalidArgument);
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace regatta

/* Calls the matmul that `regatta compile` delivered and checks every element
 * against a plain loop in double precision. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "matmul.h"

enum { M = 512, N = 512, K = 512 };
static float a[M * K], b[K * N], c[M * N];

int main(void) {
  unsigned seed = 1;
  for (int i = 0; i < M * K; ++i) {
    seed = seed * 1664525u + 1013904223u;
    a[i] = (float)(int)(seed >> 16 & 255) / 128.0f - 1.0f;
  }
  for (int i = 0; i < K * N; ++i) {
    seed = seed * 1664525u + 1013904223u;
    b[i] = (float)(int)(seed >> 16 & 255) / 128.0f - 1.0f;
  }
  const int code = matmul(a, b, c);
  if (code != 0) {
    fprintf(stderr, "matmul returned %d\n", code);
    return 1;
  }
  double worst = 0;
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      double sum = 0;
      for (int k = 0; k < K; ++k) sum += (double)a[i * K + k] * b[k * N + j];
      const double error = fabs(sum - c[i * N + j]);
      if (!(error <= 1e-3)) {
        fprintf(stderr, "c[%d][%d] is %g, wanted %g\n", i, j, c[i * N + j],
                sum);
        return 1;
      }
      if (error > worst) worst = error;
    }
  }
  printf("right: %d elements, largest absolute error %.2g\n", M * N, worst);
  return 0;
}

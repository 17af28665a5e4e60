module @jit_types attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%1: tensor<i32>, %2: tensor<f64>, %3: tensor<complex<f32>>) -> (tensor<f32>, tensor<i8>, tensor<f32>, tensor<i1>) {
  %4 = "stablehlo.convert"(%1) : (tensor<i32>) -> tensor<f32>
  %5 = "stablehlo.convert"(%2) : (tensor<f64>) -> tensor<i8>
  %6 = "stablehlo.real"(%3) : (tensor<complex<f32>>) -> tensor<f32>
  %7 = "stablehlo.constant"() {value = dense<0.5> : tensor<f64>} : () -> tensor<f64>
  %8 = "stablehlo.compare"(%2, %7) {comparison_direction = #stablehlo<comparison_direction GT>} : (tensor<f64>, tensor<f64>) -> tensor<i1>
  func.return %4, %5, %6, %8 : tensor<f32>, tensor<i8>, tensor<f32>, tensor<i1>
}
}

module @jit_batched_until attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%1: tensor<3xf64>) -> (tensor<3xf64>) {
  %19 = "stablehlo.while"(%1) ({^bb0(%2: tensor<3xf64>):
    %3 = "stablehlo.constant"() {value = dense<10.0> : tensor<f64>} : () -> tensor<f64>
    %4 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64>} : (tensor<f64>) -> tensor<3xf64>
    %5 = "stablehlo.compare"(%2, %4) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
    %9 = "stablehlo.constant"() {value = dense<false> : tensor<i1>} : () -> tensor<i1>
    %10 = "stablehlo.reduce"(%5, %9) ({^bb0(%6: tensor<i1>, %7: tensor<i1>):
    %8 = "stablehlo.or"(%6, %7) : (tensor<i1>, tensor<i1>) -> tensor<i1>
    "stablehlo.return"(%8) : (tensor<i1>) -> ()
  }) {dimensions = array<i64: 0>} : (tensor<3xi1>, tensor<i1>) -> tensor<i1>
    "stablehlo.return"(%10) : (tensor<i1>) -> ()
  }, {^bb0(%11: tensor<3xf64>):
    %12 = "stablehlo.constant"() {value = dense<10.0> : tensor<f64>} : () -> tensor<f64>
    %13 = "stablehlo.broadcast_in_dim"(%12) {broadcast_dimensions = array<i64>} : (tensor<f64>) -> tensor<3xf64>
    %14 = "stablehlo.compare"(%11, %13) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
    %15 = "stablehlo.constant"() {value = dense<2.0> : tensor<f64>} : () -> tensor<f64>
    %16 = "stablehlo.broadcast_in_dim"(%15) {broadcast_dimensions = array<i64>} : (tensor<f64>) -> tensor<3xf64>
    %17 = "stablehlo.multiply"(%11, %16) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %18 = "stablehlo.select"(%14, %17, %11) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    "stablehlo.return"(%18) : (tensor<3xf64>) -> ()
  }) : (tensor<3xf64>) -> (tensor<3xf64>)
  func.return %19 : tensor<3xf64>
}
}
